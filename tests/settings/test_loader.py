from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import SettingsError
from remit.settings import Settings, documented, load
from remit.settings.table import table
from tests.settings.given import MASKED, PATHS, VALUES

SOURCES = ("file", "environment", "flags")


def plain(value: Any) -> Any:
    """As JSON shows it: lists for tuples."""
    return msgspec.to_builtins(value) if not isinstance(value, tuple) else list(value)


def explained(settings: Settings) -> dict[str, tuple[Any, str]]:
    return {key: (plain(value), source) for key, value, source in settings.explain()}


def write(folder: Path, text: str) -> Path:
    file = folder / "remit.toml"
    file.write_text(text, encoding="utf-8")
    return file


def as_toml(given: dict[str, Any]) -> str:
    """A file with these settings; lists of tables as inline arrays."""
    tables: dict[str, list[str]] = {}
    for key, value in given.items():
        section, name = key.split(".")
        text = json.dumps(value).replace('": ', '" = ')
        tables.setdefault(section, []).append(f"{name} = {text}")
    return "\n".join("\n".join([f"[{section}]", *lines]) for section, lines in tables.items())


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@given(st.dictionaries(st.sampled_from(sorted(VALUES)), st.sets(st.sampled_from(SOURCES))))
def test_flags_win_over_the_environment_over_the_file_over_defaults(where: dict[str, set[str]]) -> None:
    def given_in(source: str) -> dict[str, Any]:
        index = SOURCES.index(source)
        return {key: VALUES[key][index] for key, sources in where.items() if source in sources}

    with tempfile.TemporaryDirectory() as name:
        file = write(Path(name), as_toml(given_in("file")))
        env = {table()[key].env[0]: as_text(value) for key, value in given_in("environment").items()}
        settings = explained(load(cwd=Path(name), env=env, flags=given_in("flags")))
    for key in VALUES:
        winner = max((SOURCES.index(source) for source in where.get(key, ())), default=None)
        if winner is None:
            assert settings[key][1] == "default"
        else:
            shown = "***" if key in MASKED else VALUES[key][winner]
            assert settings[key] == (shown, (str(file), table()[key].env[0], "command line")[winner])


def test_no_setting_is_left_out_of_the_test_of_priorities() -> None:
    assert {*VALUES, *PATHS} == set(table())


def test_without_a_file_everything_is_a_default_of_the_working_folder(tmp_path: Path) -> None:
    settings = load(cwd=tmp_path, env={"HOME": str(tmp_path)})
    assert settings.file is None
    assert settings.folder == tmp_path
    assert settings.journal.url == str(tmp_path / ".remit/journal.db")
    assert settings.fs.roots == (str(tmp_path),)
    assert {source for _, (_, source) in explained(settings).items()} == {"default"}
    assert [key for key, _, _ in settings.explain()] == [row.key for row in documented()]


def test_the_default_working_folder_is_the_process_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(env={"HOME": str(tmp_path)}).folder == tmp_path


def test_a_vanished_working_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SettingsError, match="the working folder or your home folder does not exist"):
        load(env={})


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    settings = load(cwd=tmp_path, env={})
    with pytest.raises(AttributeError):
        settings.jobs.concurrency = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "name", "remedy"),
    [
        ("[jobs]\nconcurency = 4", "jobs.concurency", "Did you mean jobs.concurrency?"),
        ("[job]\nconcurrency = 4", "job", "Did you mean jobs?"),
        ("concurrency = 4", "concurrency", "Did you mean jobs.concurrency?"),
        ("[app]\nurl = 'x.db'", "app.url", "Did you mean journal.url?"),
        ("[weather]\nsun = true", "weather", "`remit config` lists every setting."),
    ],
)
def test_an_unknown_name_in_the_file_is_refused_with_a_suggestion(
    tmp_path: Path, text: str, name: str, remedy: str
) -> None:
    file = write(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load(cwd=tmp_path, env={})
    assert caught.value.message == f"{file}: there is no setting {name}"
    assert caught.value.remedy == remedy
    assert caught.value.code is Code.SETTINGS_INVALID


def test_a_section_that_is_no_table_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "jobs = 4")
    with pytest.raises(SettingsError, match="jobs must be a table"):
        load(cwd=tmp_path, env={})


def test_an_unknown_environment_name_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load(cwd=tmp_path, env={"REMIT_JOBS_CONCURENCY": "4"})
    assert caught.value.message == "environment: there is no setting REMIT_JOBS_CONCURENCY"
    assert caught.value.remedy == "Did you mean REMIT_JOBS_CONCURRENCY?"


@pytest.mark.parametrize(
    "name",
    [
        "REMIT_TEST_POSTGRES",
        "REMIT_FAMILY",
        "REMITTANCE",
        "OTHER_JOBS_CONCURRENCY",
        "REMIT_SERVICE_HOST",
        "REMIT_SERVICE_PORT_HTTP",
        "REMIT_PORT",
        "REMIT_PORT_8080_TCP_ADDR",
    ],
)
def test_environment_names_that_are_not_ours_are_passed_over(tmp_path: Path, name: str) -> None:
    assert load(cwd=tmp_path, env={name: "x"}) == load(cwd=tmp_path, env={})


def test_an_unknown_flag_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load(cwd=tmp_path, env={}, flags={"journal.uri": None})
    assert caught.value.message == "command line: there is no setting journal.uri"
    assert caught.value.remedy == "Did you mean journal.url?"


@pytest.mark.parametrize("value", [None, ""])
def test_a_flag_that_was_not_given_changes_nothing(tmp_path: Path, value: Any) -> None:
    write(tmp_path, "[journal]\nurl = 'x.db'")
    settings = load(cwd=tmp_path, env={}, flags={"journal.url": value, "jobs.concurrency": value})
    assert settings == load(cwd=tmp_path, env={})


def test_a_flag_may_be_text(tmp_path: Path) -> None:
    flags = {"jobs.concurrency": "4", "tools.no_mcp": "yes", "fs.roots": "/a,/b"}
    settings = load(cwd=tmp_path, env={}, flags=flags)
    assert (settings.jobs.concurrency, settings.tools.no_mcp, settings.fs.roots) == (4, True, ("/a", "/b"))


def test_an_empty_environment_variable_counts_as_unset(tmp_path: Path) -> None:
    env = {"REMIT_JOBS_CONCURRENCY": "", "NO_MCP": "", "REMIT_CONFIG": "", "NO_COLOR": ""}
    assert load(cwd=tmp_path, env=env) == load(cwd=tmp_path, env={})


@pytest.mark.parametrize(
    ("name", "text", "key", "value"),
    [
        ("REMIT_PRINCIPAL", "ann", "app.principal", "ann"),
        ("REMIT_JOURNAL", ":memory:", "journal.url", ":memory:"),
        ("REMIT_MODULES", "a.b:c", "app.modules", ["a.b", "c"]),
        ("SCHEMA_GATE_MODE", "off", "tools.schema_gate", "off"),
        ("NO_MCP", "true", "tools.no_mcp", True),
        ("MCP_TIMEOUT_MS", "1", "mcp.timeout_ms", 1),
        ("MCP_SERVERS_JSON", "[]", "mcp.servers_json", "[]"),
        ("MCP_SERVER_NAME", "a", "mcp.server_name", "a"),
        ("MCP_SERVER_CMD", "a", "mcp.server_cmd", "a"),
        ("MCP_SERVER_ARGS_JSON", "…", "mcp.server_args_json", "…"),
        ("MCP_SERVER_ARGS", "…", "mcp.server_args", "…"),
        ("MCP_SERVER_CWD", "a", "mcp.server_cwd", "a"),
        ("EVIDENCE_INLINE_LIMIT_BYTES", "1", "evidence.inline_limit_bytes", 1),
        ("EVIDENCE_RAW_LIMIT_BYTES", "2", "evidence.raw_limit_bytes", 2),
        ("EVIDENCE_MAX_ITEMS_PER_REPORT", "3", "evidence.max_items_per_report", 3),
        ("EVIDENCE_RETENTION_DAYS", "4", "evidence.retention_days", 4),
        ("NO_COLOR", "0", "output.color", "never"),
        ("FORCE_COLOR", "3", "output.color", "always"),
    ],
)
def test_short_environment_names_work_and_yield_to_the_full_ones(
    tmp_path: Path, name: str, text: str, key: str, value: Any
) -> None:
    assert explained(load(cwd=tmp_path, env={name: text}))[key] == (value, name)
    full = table()[key].env[0]
    other = as_text(plain(table()[key].default)) or "x"
    assert explained(load(cwd=tmp_path, env={name: text, full: other}))[key][1] == full


def test_no_color_wins_over_force_color(tmp_path: Path) -> None:
    assert load(cwd=tmp_path, env={"NO_COLOR": "1", "FORCE_COLOR": "1"}).output.color == "never"


def test_a_value_of_the_wrong_type_names_its_key_and_its_source(tmp_path: Path) -> None:
    file = write(tmp_path, "[jobs]\nconcurrency = 'many'")
    with pytest.raises(SettingsError) as caught:
        load(cwd=tmp_path, env={})
    shown = "jobs.concurrency is 'many', but it must be an integer from 1 to 100000"
    assert caught.value.message == f"{file}: {shown}"
    assert caught.value.remedy == "Correct jobs.concurrency or leave it out; its default is 16."
    file.unlink()
    with pytest.raises(SettingsError, match=f"REMIT_JOBS_CONCURRENCY: {shown}"):
        load(cwd=tmp_path, env={"REMIT_JOBS_CONCURRENCY": "many"})
    with pytest.raises(SettingsError, match=f"command line: {shown}"):
        load(cwd=tmp_path, env={}, flags={"jobs.concurrency": "many"})


def test_a_wrong_value_is_refused_even_where_another_source_wins(tmp_path: Path) -> None:
    write(tmp_path, "[jobs]\nconcurrency = 'many'")
    with pytest.raises(SettingsError, match=r"jobs\.concurrency"):
        load(cwd=tmp_path, env={}, flags={"jobs.concurrency": 4})


def test_paths_in_the_file_count_from_its_folder_and_others_from_the_working_folder(tmp_path: Path) -> None:
    below = tmp_path / "a/b"
    below.mkdir(parents=True)
    write(tmp_path, "[fs]\nroots = ['docs', '/abs']\n[app]\nmodules = ['tools.py', 'pkg.mod']\n[journal]\nurl='j.db'")
    settings = load(cwd=below, env={})
    assert settings.folder == tmp_path
    assert settings.fs.roots == (str(tmp_path / "docs"), "/abs")
    assert settings.app.modules == (str(tmp_path / "tools.py"), "pkg.mod")
    assert settings.journal.url == str(tmp_path / "j.db")
    env = {"REMIT_FS_ROOTS": "docs", "REMIT_MODULES": f"tools.py{os.pathsep}../x/y", "REMIT_JOURNAL": "j.db"}
    settings = load(cwd=below, env=env)
    assert settings.fs.roots == (str(below / "docs"),)
    assert settings.app.modules == (str(below / "tools.py"), str(tmp_path / "a/x/y"))
    assert settings.journal.url == str(below / "j.db")
    assert load(cwd=below, env={}, flags={"fs.roots": [".."]}).fs.roots == (str(tmp_path / "a"),)


def test_defaults_count_from_the_project_folder(tmp_path: Path) -> None:
    below = tmp_path / "a"
    below.mkdir()
    write(tmp_path, "")
    settings = load(cwd=below, env={})
    assert settings.journal.url == str(tmp_path / ".remit/journal.db")
    assert settings.fs.roots == (str(tmp_path),)
