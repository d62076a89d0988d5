from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path
from typing import Any

import pytest

from remit.errors import SettingsError
from remit.settings import Settings, load
from remit.settings.table import table


def with_env(folder: Path, **env: str) -> Settings:
    return load(cwd=folder, env=env)


@pytest.mark.parametrize("text", ["true", "1", "yes", "on", "TRUE", " Yes "])
def test_words_for_true(tmp_path: Path, text: str) -> None:
    assert with_env(tmp_path, REMIT_TOOLS_NO_MCP=text).tools.no_mcp is True


@pytest.mark.parametrize("text", ["false", "0", "no", "off", "Off"])
def test_words_for_false(tmp_path: Path, text: str) -> None:
    assert with_env(tmp_path, REMIT_POLICY_REMEMBERED=text).policy.remembered is False


@pytest.mark.parametrize(("text", "number"), [("4", 4), (" 4 ", 4), ("1_000", 1000)])
def test_integers_are_written_as_in_toml(tmp_path: Path, text: str, number: int) -> None:
    assert with_env(tmp_path, REMIT_JOBS_CONCURRENCY=text).jobs.concurrency == number


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("a,b_*", ("a", "b_*")),
        (" a , b ,", ("a", "b")),
        ("a", ("a",)),
        ('["a", "b,c"]', ("a", "b,c")),
        (" []", ()),
    ],
)
def test_a_list_is_a_json_array_or_separated_by_commas(tmp_path: Path, text: str, items: tuple[str, ...]) -> None:
    settings = with_env(tmp_path, REMIT_TOOLS_PREFERRED_PROVIDER_ORDER=text)
    assert settings.tools.preferred_provider_order == items


def test_modules_are_separated_as_in_path(tmp_path: Path) -> None:
    settings = with_env(tmp_path, REMIT_MODULES=os.pathsep.join(["a,b/c.py", "d.e", ""]))
    assert settings.app.modules == (str(tmp_path / "a,b/c.py"), "d.e")
    assert with_env(tmp_path, REMIT_MODULES='["a", "b"]').app.modules == ("a", "b")


def test_policy_rules_are_a_json_array(tmp_path: Path) -> None:
    assert with_env(tmp_path, REMIT_POLICY_RULES='[{"id": "a"}]').policy.rules == ({"id": "a"},)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("REMIT_TOOLS_NO_MCP", "maybe", "tools.no_mcp is 'maybe', but it must be true or false"),
        ("REMIT_JOBS_CONCURRENCY", "0", "jobs.concurrency is 0, but it must be an integer from 1 to 100000"),
        ("REMIT_JOBS_CONCURRENCY", "4.5", "jobs.concurrency is '4.5', but it must be an integer from 1 to 100000"),
        ("REMIT_JOBS_CONCURRENCY", "9" * 30, f"jobs.concurrency is {'9' * 30}, but it must be an integer from 1 to"),
        ("REMIT_JOBS_CONCURRENCY", "9" * 5000, f"jobs.concurrency is '{'9' * 79}…, but it must be an integer"),
        ("REMIT_JOBS_MISMATCH", "Warn", "jobs.mismatch is 'Warn', but it must be one of warn, fail"),
        ("REMIT_JOBS_SHARE", "label:", "jobs.share is 'label:', but it must be principal, recipe or label:NAME"),
        (
            "REMIT_JOBS_QUOTAS",
            '{"label:": 3}',
            "jobs.quotas is {'label:': 3}, but it must be a table, each key principal, recipe or",
        ),
        ("REMIT_DBOS_QUEUE", "A b", "dbos.queue is 'A b', but it must be 1 to 40 of a-z, 0-9, _ and -"),
        ("REMIT_FS_ROOTS", '["a"', """fs.roots is '["a"', but it must be a list of non-empty texts"""),
        ("REMIT_FS_ROOTS", "[1]", "fs.roots is [1], but it must be a list of non-empty texts"),
        ("REMIT_FS_ROOTS", '[""]', "fs.roots is [''], but it must be a list of non-empty texts"),
        ("REMIT_FS_ROOTS", "[" * 100_000, "fs.roots is '[[[["),
        ("REMIT_POLICY_RULES", "a,b", "policy.rules is ['a', 'b'], but it must be a list of tables"),
        ("REMIT_PRINCIPAL", "\udcff", "app.principal is not UTF-8"),
        ("REMIT_JOURNAL", "mysql://me:secret@db/x", "journal.url cannot be used: mysql:// is unknown"),
        (
            "REMIT_JOURNAL",
            "postgresql:me:secret@db/x",
            "journal.url cannot be used: // is missing after the first",
        ),
        (
            "REMIT_JOURNAL",
            "postgres:/me:secret@db/x",
            "journal.url cannot be used: // is missing after the first",
        ),
        ("REMIT_FS_ROOTS", '["a\\u0000b"]', "fs.roots cannot be used: embedded null"),
        ("REMIT_RECORDER_URL", "http:/secret", "recorder.url cannot be used: it begins with neither https:// nor"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(tmp_path: Path, name: str, text: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        with_env(tmp_path, **{name: text})
    assert caught.value.message.startswith(f"{name}: {expected}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [key for key in table() if key == "recorder.witness" or (key.endswith("url") and key != "journal.url")],
)
def test_every_address_of_http_is_refused_when_it_is_read(tmp_path: Path, key: str) -> None:
    for wrong in ("ftp://x.example", "x.example", "https://", "http://[::1"):
        with pytest.raises(SettingsError, match=rf"{key} cannot be used: it begins with neither https://"):
            load(cwd=tmp_path, env={}, flags={key: wrong})


@pytest.mark.parametrize("value", [True, 4.0, "4x", [4]])
def test_a_value_of_another_type_is_never_coerced(tmp_path: Path, value: Any) -> None:
    with pytest.raises(SettingsError, match=r"jobs\.concurrency"):
        load(cwd=tmp_path, env={}, flags={"jobs.concurrency": value})


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:///j.db", "{folder}/j.db"),
        ("sqlite:////var/j.db", "/var/j.db"),
        ("/var/j.db", "/var/j.db"),
        ("../j.db", "{parent}/j.db"),
        ("~/j.db", "/home/ann/j.db"),
        ("sqlite:///:memory:", ":memory:"),
        (":memory:", ":memory:"),
        ("postgresql://ann:pw@db/x?schema=y", "postgresql://ann:pw@db/x?schema=y"),
        ("postgres://db/x", "postgres://db/x"),
    ],
)
def test_the_journal_is_an_absolute_path_or_memory(tmp_path: Path, url: str, expected: str) -> None:
    settings = with_env(tmp_path, REMIT_JOURNAL=url, HOME="/home/ann")
    assert settings.journal.url == expected.format(folder=tmp_path, parent=tmp_path.parent)


def test_a_tilde_stands_for_home_and_only_for_one_s_own(tmp_path: Path) -> None:
    roots = with_env(tmp_path, REMIT_FS_ROOTS="~,~/notes,~bob,a~", HOME="/home/ann").fs.roots
    assert roots == ("/home/ann", "/home/ann/notes", str(tmp_path / "~bob"), str(tmp_path / "a~"))
    assert with_env(tmp_path, REMIT_FS_ROOTS="~/notes/../diary", HOME="/home/ann").fs.roots == ("/home/ann/diary",)
    assert with_env(tmp_path, REMIT_FS_ROOTS="~/notes").fs.roots == (str(tmp_path / "~/notes"),)


def test_roots_are_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert with_env(tmp_path, REMIT_FS_ROOTS="link").fs.roots == (str(tmp_path / "real"),)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="resolving a loop raises no error there")
def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(SettingsError, match=r"fs\.roots cannot be used"):
        with_env(tmp_path, REMIT_FS_ROOTS="loop")


def test_the_default_principal_is_the_account_not_what_the_environment_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setenv("LOGNAME", "mallory")
    assert with_env(tmp_path, LOGNAME="mallory", USER="mallory").app.principal == account
    monkeypatch.setattr(os, "getuid", lambda: 3_999_999_999)
    assert with_env(tmp_path).app.principal == "uid3999999999"


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("postgresql://ann:hunter2@db/x?schema=y", "postgresql://********@db/x?schema=y"),
        ("postgresql://ann:hun@ter2@db/x", "postgresql://********@db/x"),
        ("postgresql://ann:hun/ter2@db/x", "postgresql://********@db/x"),
        ("postgresql://ann:hun?ter2@db/x", "postgresql://********@db/x"),
        ("postgresql://ann:hun#ter2@db/x", "postgresql://********@db/x"),
        ("postgresql://ann:hun ter2@db/x", "postgresql://********@db/x"),
        ("postgresql://db/x?user=ann&password=hunter2", "postgresql://db/x?user=ann&password=********"),
    ],
)
def test_a_password_is_shown_nowhere(tmp_path: Path, url: str, seen: str) -> None:
    settings = with_env(tmp_path, REMIT_JOURNAL=url)
    assert settings.journal.url == url
    assert next(one.value for one in settings.explain() if one.key == "journal.url") == seen
    shown = [repr(settings), str(settings), repr(settings.journal), repr(settings.explain())]
    assert not any(part in text for text in shown for part in ("hun", "ter2"))


def test_a_journal_that_is_no_text_is_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"journal\.url must be text") as caught:
        load(cwd=tmp_path, env={}, flags={"journal.url": ["postgresql://ann:hunter2@db/x"]})
    assert "hunter2" not in str(caught.value)
