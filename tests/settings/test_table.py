from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from remit.settings import Settings, documented, load
from remit.settings.section import About
from remit.settings.table import checked, table


def test_every_default_fits_its_own_type() -> None:
    for row in table().values():
        assert checked(row, row.default, "default") == row.default


def test_every_setting_says_what_it_means() -> None:
    for row in table().values():
        assert isinstance(row.about, About)
        assert row.about.meaning.endswith(".")


def test_no_two_settings_share_an_environment_name() -> None:
    names = [name for row in table().values() for name in row.env]
    assert len(names) == len(set(names))


@pytest.mark.slow
def test_every_documented_default_is_the_toml_that_gives_it(tmp_path: Path) -> None:
    for doc in documented():
        default = tomllib.loads(f"x = {doc.default}")["x"]
        flags = {doc.key: default} if default != "" else {}
        given, without = (load(cwd=tmp_path, env={}, flags=chosen) for chosen in (flags, {}))
        assert given.value(doc.key, None) == without.value(doc.key, None) is not None


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("journal.url", "text"),
        ("tools.no_mcp", "true or false"),
        ("jobs.mismatch", "one of warn, fail, migrate"),
        ("jobs.drain_seconds", "an integer from 0 to 86400"),
        ("fs.roots", "a list of non-empty texts"),
        ("policy.rules", "a list of tables"),
    ],
)
def test_types_are_in_words(key: str, text: str) -> None:
    assert {doc.key: doc.type for doc in documented()}[key] == text


def test_the_full_environment_name_comes_first() -> None:
    names = {doc.key: doc.env for doc in documented()}
    assert names["tools.no_mcp"] == ("REMIT_TOOLS_NO_MCP", "NO_MCP")
    assert names["jobs.concurrency"] == ("REMIT_JOBS_CONCURRENCY",)


def test_importing_settings_brings_in_nothing_slow() -> None:
    slow = {"asyncio", "apsw", "click", "difflib", "jsonschema_rs", "rich", "tomllib", "yaml"}
    script = "import sys, remit.settings; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert slow & set(done.stdout.split()) == set()


def test_all_settings_are_explained(tmp_path: Path) -> None:
    settings = load(cwd=tmp_path, env={"NO_MCP": "1"})
    assert isinstance(settings, Settings)
    assert ("tools.no_mcp", True, "NO_MCP") in settings.explain()
    assert [row.key for row in settings.explain()] == list(table())
