"""The part of docs/extending.md is installed from another folder, and does what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remit import Capability

PAGE = (Path(__file__).parents[2] / "docs/extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```(?:toml|python)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


class Shop:
    """A project beside the installed part."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.folder = place / "shop"
        for name, text in FILES.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
        self.site = place / "site"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--target", str(self.site), str(place / "acme-weather")], check=True, capture_output=True)

    def remit(self, *words: str, trust: bool = True) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("REMIT_")}
        ours = {"PYTHONPATH": str(self.site), "XDG_DATA_HOME": str(self.place / "data")}
        command = [sys.executable, "-m", "remit", *(["--trust"] if trust else []), *words]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**kept, **ours},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def parts(self, *words: str) -> dict[str, dict[str, Any]]:
        return {row["part"]: row for row in json.loads(self.remit("parts", "--json", *words).stdout)}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("extending"))


pytestmark = pytest.mark.slow


def test_its_recipe_calls_its_tool_with_its_setting(shop: Shop) -> None:
    done = shop.remit("run", "outlook", "--place", "Bern")
    assert "20 degrees fahrenheit in Bern" in done.stdout, done.stderr


def test_its_command_is_one_of_remit(shop: Shop) -> None:
    assert shop.remit("weather", "Bern").stdout == "20 degrees in Bern\n"


def test_its_operation_is_one_of_the_api(shop: Shop) -> None:
    assert json.loads(shop.remit("api", "weather.unit").stdout) == "fahrenheit"


def test_its_check_is_one_of_doctor(shop: Shop) -> None:
    checks = json.loads(shop.remit("doctor", "--live", "--json").stdout)
    assert [check["detail"] for check in checks if check["name"] == "weather"] == ["forecasts are made up"]


def test_parts_says_where_it_is_from_and_live_what_it_brings(shop: Shop) -> None:
    row = shop.parts()["weather"]
    assert (row["source"], row["state"], row["brings"]) == ("acme-weather 1.0", "used", [])
    row = shop.parts("--live")["weather"]
    assert row["brings"] == ["tools", "recipe outlook", "noun weather", "command weather", "settings", "checks"]
    assert row["state"] == "ready"


def test_nothing_of_it_runs_in_a_folder_that_is_not_trusted(shop: Shop) -> None:
    for words in (["run", "outlook", "--place", "Bern"], ["weather", "Bern"], ["parts", "--live"]):
        done = shop.remit(*words, trust=False)
        assert done.returncode != 0
        assert "FOLDER_NOT_TRUSTED" in done.stderr
    assert "run the installed part weather" in shop.remit("trust", trust=False).stderr


def test_looking_does_not_import_it(shop: Shop) -> None:
    shop.remit("run", "outlook", "--place", "Bern")
    place = shop.site / "acme_weather" / "__init__.py"
    text = place.read_text(encoding="utf-8")
    try:
        place.write_text("raise SystemExit(99)\n", encoding="utf-8")
        for words in (["jobs"], ["show", "last"], ["confirm"], ["parts"], ["config"], ["doctor"]):
            assert shop.remit(*words).returncode == 0, words
        done = shop.remit("run", "outlook", "--place", "Bern")
        assert "MODULE_UNLOADABLE" in done.stderr
        assert "weather" in done.stderr
    finally:
        place.write_text(text, encoding="utf-8")


def test_a_wrong_setting_of_it_is_refused_where_it_is_used(shop: Shop) -> None:
    file = shop.folder / "remit.toml"
    text = file.read_text(encoding="utf-8")
    try:
        file.write_text(text.replace("unit =", "units ="), encoding="utf-8")
        done = shop.remit("run", "outlook", "--place", "Bern")
        assert "there is no setting weather.units" in done.stderr
        assert "weather.unit" in done.stderr
    finally:
        file.write_text(text, encoding="utf-8")


def test_config_does_not_show_its_values(shop: Shop) -> None:
    rows = {row["key"]: row["value"] for row in json.loads(shop.remit("config", "--json").stdout)}
    assert rows["weather.unit"] == "(set)"


def test_every_field_of_a_part_has_its_row() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE.partition("## The line")[2], re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"\w+", row)] == list(Capability._fields)
