"""Settings of parts that the core does not know: accepted where the part is named, typed by the part's own section."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest

from remit.errors import SettingsError
from remit.parts.tickets.settings import TicketSettings
from remit.settings import Settings, load, override
from remit.settings.file import Base
from remit.settings.parts import settings_of
from remit.settings.section import About, Count, Section


def _path(text: str, base: Base) -> str:
    return str(base.path(text)) if text else text


class Weather(Section, frozen=True):
    days: Annotated[Count, About("How far ahead.")] = 3
    cache: Annotated[str, About("Where answers are kept.", resolve=_path)] = ""


def loaded(tmp_path: Path, text: str, **env: str) -> Settings:
    (tmp_path / "remit.toml").write_text(text, encoding="utf-8")
    return load(env=env, cwd=tmp_path)


def weather(settings: Settings) -> Weather:
    return settings_of(settings, "weather", Weather)


def test_what_is_not_written_has_its_default(tmp_path: Path) -> None:
    assert weather(loaded(tmp_path, "[app]\ncapabilities = ['weather']\n")) == Weather()


def test_the_file_and_over_it_the_environment_are_read(tmp_path: Path) -> None:
    text = "[app]\ncapabilities = ['weather']\n[weather]\ndays = 5\ncache = 'kept'\n"
    assert weather(loaded(tmp_path, text)) == Weather(5, str(tmp_path / "kept"))
    assert weather(loaded(tmp_path, text, REMIT_WEATHER_DAYS="7")).days == 7


def test_a_part_named_in_the_environment_has_its_table_too(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "[weather]\ndays = 5\n", REMIT_CAPABILITIES="weather")
    assert weather(settings).days == 5


def test_the_section_that_a_part_declared_is_as_the_cores(tmp_path: Path) -> None:
    (tmp_path / "remit.toml").write_text("[tickets]\ntool_only = true\n", encoding="utf-8")
    settings = load(env={"ENABLE_REPLY_DERIVATION": "1"}, cwd=tmp_path)
    own = settings_of(settings, "tickets", TicketSettings)
    assert (own.tool_only, own.derive_replies) == (True, True)
    assert settings.value("tickets.tool_only", default=False)
    assert override(settings, {"tickets.tool_only": False}).value("tickets.tool_only", default=True) is False
    with pytest.raises(SettingsError, match=r"tickets\.tool_only is 3"):
        loaded(tmp_path, "[tickets]\ntool_only = 3\n")


def test_a_setting_of_a_part_that_is_not_here_is_what_one_makes_of_it(tmp_path: Path) -> None:
    assert loaded(tmp_path, "").value("weather.days", default=7) == 7


@pytest.mark.parametrize(
    ("text", "env"),
    [
        pytest.param("[weather]\ndays = 5\n", {}, id="a part that is not named"),
        pytest.param("[app]\ncapabilities = ['weather']\n[wether]\ndays = 5\n", {}, id="another one"),
        pytest.param("weather = 5\n[app]\ncapabilities = ['weather']\n", {}, id="no table"),
        pytest.param("", {"REMIT_WEATHER_DAYS": "5"}, id="the environment"),
    ],
)
def test_other_tables_are_refused_at_once(tmp_path: Path, text: str, env: dict[str, str]) -> None:
    with pytest.raises(SettingsError):
        loaded(tmp_path, text, **env)


@pytest.mark.parametrize(
    ("written", "env", "named"),
    [
        ("days = 0", {}, "weather.days"),
        ("day = 1", {}, "weather.day"),
        ("", {"REMIT_WEATHER_DAYS": "many"}, "REMIT_WEATHER_DAYS"),
        ("", {"REMIT_WEATHER_DAY": "1"}, "weather.day"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_where_it_is_used(
    tmp_path: Path, written: str, env: dict[str, str], named: str
) -> None:
    settings = loaded(tmp_path, f"[app]\ncapabilities = ['weather']\n[weather]\n{written}\n", **env)
    with pytest.raises(SettingsError, match=named):
        weather(settings)


def test_a_table_cannot_take_the_place_of_the_cores(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "[app]\ncapabilities = ['jobs']\n[jobs]\nconcurrency = 2\n")
    assert (settings.jobs.concurrency, settings.parts) == (2, {})
