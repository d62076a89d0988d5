from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keyring
import pytest

from tests.cli.conftest import Project


def checks(project: Project, *words: str) -> dict[str, dict[str, Any]]:
    found: list[dict[str, Any]] = project.here(*words, "doctor", "--live", "--json").json
    return {check["name"]: check for check in found}


@pytest.fixture(autouse=True)
def own_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for folders of runs in a place that no other test's runs have."""
    monkeypatch.setattr("remit.parts.work.folder._SHARED", tmp_path / "work")


def test_a_healthy_project_has_nothing_but_ok(project: Project) -> None:
    project.job("report")
    done = project.here("doctor", "--live")
    assert done.status == 0
    assert {line.split()[0] for line in done.out.splitlines()} == {"ok"}
    names = [line.split()[1] for line in done.out.splitlines()]
    expected = [
        "python", "sqlite", "extras", "settings", "policy", "trust", "module", "disk", "journal", "integrity",
        "seals", "wal", "mode", "tools", "folder", "browser", "sandbox", "terminal",
    ]  # fmt: skip
    assert names == expected


def test_the_extras_that_are_here_and_those_that_are_not_are_listed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = ['click; extra == "jq"', 'no-such-package<2; extra == "jwt"', 'click; extra == "jwt"', "click<9"]
    monkeypatch.setattr("remit.cli.checks.requires", lambda _name: needs)
    said = checks(project)["extras"]["detail"]
    assert said == "jq; not installed: jwt (`pip install 'remit[jwt]'`)"


def test_wrong_settings_are_named_and_the_rest_still_looked_at(project: Project) -> None:
    project.configure("[jobs]\nnope = 1\n")
    done = project.here("doctor", "--live")
    assert done.status == 1
    assert any(line.startswith("fail  settings") for line in done.out.splitlines())
    assert any(line.startswith("ok    python") for line in done.out.splitlines())


@pytest.mark.parametrize(
    ("more", "name", "said"),
    [
        ('[[policy.rules]]\nid = "r"\neffect = "perhaps"\n', "policy", "perhaps"),
        ('[[models.fallbacks]]\nto = ["nope"]\n', "models", "'nope' names no model"),
        ('[models]\nretried = ["bsy"]\n', "models", "'bsy' is not a fault"),
        ('[[models.budgets]]\nname = "b"\n', "models", "limits nothing"),
        ('[fs]\nroots = ["nowhere"]\n', "folder", "is not a folder"),
        ('[journal]\nurl = "remit.toml/journal.db"\n', "journal", "cannot be created"),
        ('[jobs]\nengine = "warp"\n', "engine", "no engine is named 'warp'"),
        ('[audit]\nkey = "/nowhere.pem"\n', "audit", "/nowhere.pem"),
        ('[web]\nsearch = ["gogle"]\n', "web", "'gogle' in web.search"),
        ('[models]\ndefault = "gpt"\n', "models", "models.default: 'gpt' names no model"),
        ('[confirm]\nallowed_signers = "/nowhere"\n', "confirm", "/nowhere cannot be read"),
    ],
)
def test_what_is_not_in_order_fails_and_says_how_to_mend_it(project: Project, more: str, name: str, said: str) -> None:
    project.configure(more)
    found = checks(project)[name]
    assert found["verdict"] == "fail"
    assert said in found["detail"]
    assert found["remedy"]
    assert project.here("doctor", "--live").status == 1


def test_a_journal_whose_keys_are_gone_fails_its_own_check(project: Project) -> None:
    project.job("report")
    project.configure('[journal]\nkey_file = "/nowhere.keys"\n')
    found = checks(project)
    assert (found["journal"]["verdict"], found["journal"]["code"]) == ("fail", "SETTINGS_INVALID")
    assert "/nowhere.keys does not exist" in found["journal"]["detail"]
    assert found["tools"]["verdict"] == "ok", "what else there is, is looked at all the same"


def test_where_the_taint_of_a_rule_holds_in_part_is_said(project: Project) -> None:
    rule = '[[policy.rules]]\nid = "pay"\neffect = "allow"\ntools = ["*"]\n'
    for taint, named in (("", False), ('taint = "strict"\n', False), ('taint = "deny"\n', True)):
        project.configure(rule + taint)
        found = checks(project)["policy"]
        assert (found["verdict"], "taint of pay" in found["detail"]) == ("ok", named)


def test_a_client_that_a_server_would_refuse_fails(project: Project) -> None:
    client = '[[clients]]\nprincipal = "okta:{sub}"\naudience = "remit"\nissuer = "http://acme.example"\n'
    project.configure(client)
    found = checks(project)["clients"]
    assert (found["verdict"], found["code"]) == ("fail", "SETTINGS_INVALID")
    project.configure(client.replace("http:", "https:"))
    assert "clients" not in checks(project)


def test_an_engine_that_is_not_there_fails_with_its_code_before_anything_runs(project: Project) -> None:
    project.configure('[jobs]\nengine = "warp"\n')
    done = project.here("doctor")
    assert (done.status, "fail  engine     SETTINGS_INVALID: jobs.engine" in done.out) == (1, True)
    project.configure('[jobs]\nengine = "local"\n')
    assert project.here("doctor").status == 0


def test_a_module_that_cannot_be_imported_is_named(project: Project) -> None:
    (project.folder / "broken.py").write_text("1 / 0", encoding="utf-8")
    (project.folder / "remit.toml").write_text('[app]\nmodules = ["broken.py"]\n', encoding="utf-8")
    found = checks(project)["module"]
    assert (found["verdict"], "ZeroDivisionError" in found["detail"]) == ("fail", True)


@pytest.mark.parametrize(("priority", "warned"), [(0.5, True), (5, False)])
def test_a_keyring_in_plain_text_is_warned_of(
    project: Project, monkeypatch: pytest.MonkeyPatch, priority: float, warned: bool
) -> None:
    monkeypatch.setattr(keyring, "get_keyring", lambda: SimpleNamespace(priority=priority))
    assert "keeps plain" not in project.here("doctor").out
    project.configure('[secrets.BANK]\nkeyring = "bank"\n')
    assert ("keeps plain" in project.here("doctor").out) is warned


def test_a_damaged_journal_is_named(project: Project) -> None:
    (project.folder / "x.db").write_bytes(b"this is no database" * 100)
    assert checks(project, "--journal", "x.db")["journal"]["verdict"] == "fail"


def test_a_journal_in_memory_is_warned_of(project: Project) -> None:
    found = checks(project, "--journal", ":memory:")["journal"]
    assert (found["verdict"], found["detail"]) == ("warn", "in memory: nothing is saved")


def test_a_full_disk_is_warned_of(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 50 * 1024**2

    monkeypatch.setattr("shutil.disk_usage", lambda _path: Usage)
    assert checks(project)["disk"]["verdict"] == "fail"
    Usage.free *= 10
    assert checks(project)["disk"]["verdict"] == "warn"


def test_a_withheld_tool_is_named_with_its_reason(project: Project) -> None:
    (project.folder / "own.py").write_text(WITHHELD, encoding="utf-8")
    project.configure(f'\n[app]\nmodules = ["{project.folder / "own.py"}"]\n', modules=False)
    found = checks(project)["tool"]
    assert found["verdict"] == "warn"
    assert found["detail"].startswith("own.bad is withheld: ")
    listed = project.here("tools")
    assert [line.split()[2] for line in listed.out.splitlines() if line.startswith("own.bad")] == ["withheld"]


def test_an_own_search_that_gives_a_bare_list_is_warned_of(project: Project) -> None:
    (project.folder / "own.py").write_text(SEARCH, encoding="utf-8")
    order = '[tools]\npreferred_provider_order = ["local", "web"]'
    project.configure(f'\n[app]\nmodules = ["{project.folder / "own.py"}"]\n{order}\n', modules=False)
    found = checks(project)["tool"]
    assert found["verdict"] == "warn"
    assert found["detail"].startswith("web.search: local's result is of type array, ")


SEARCH = """
from typing import Any
from remit import tool

@tool("web.search")
def search(query: str) -> list[dict[str, Any]]:
    return [{"link": "https://a.example/"}]
"""

WITHHELD = """
import msgspec
from remit import tool

@tool("own.bad", level="L0")
def bad() -> None:
    "Has an unusable schema."

bad.meta = msgspec.structs.replace(bad.meta, input_schema={"type": 5})
"""


def test_a_default_that_no_approver_sees_is_named(project: Project) -> None:
    (project.folder / "made.py").write_text(MADE, encoding="utf-8")
    project.configure(f'\n[app]\nmodules = ["{project.folder / "made.py"}"]\n', modules=False)
    found = checks(project)["defaults"]
    assert (found["verdict"], bool(found["remedy"])) == ("warn", True)
    assert "own.book" in found["detail"]
    assert "slot.at" in found["detail"]


MADE = """
import random, msgspec
from remit import tool

class Slot(msgspec.Struct):
    at: float = msgspec.field(default_factory=random.random)

@tool("own.book")
def book(slot: Slot) -> None:
    "Book."
"""


def test_json_is_a_list_of_checks(project: Project) -> None:
    found = json.loads(project.here("doctor", "--live", "--json").out)
    assert set(found[0]) == {"name", "verdict", "detail", "remedy", "code"}
    assert Path(project.folder / ".remit").exists() is False


@pytest.mark.parametrize("words", [("doctor",), ("tools",)], ids=" ".join)
def test_a_server_of_the_environment_that_is_left_out_is_told_of(project: Project, words: tuple[str, ...]) -> None:
    project.env["MCP_SERVERS_JSON"] = '[{"name": "Bad!", "cmd": "npx"}]'
    done = project.apart(*words)
    assert "MCP_SERVERS_JSON" in done.out + done.err
    assert "skipped" in done.out + done.err


def test_a_server_of_the_environment_that_is_whole_is_not_warned_of(project: Project) -> None:
    project.env |= {"MCP_SERVER_NAME": "files", "MCP_SERVER_CMD": sys.executable}
    done = project.here("doctor")
    assert "skipped" not in done.out + done.err


def test_a_customary_name_that_nothing_reads_is_told_of(project: Project) -> None:
    project.env["TICKETSTORE_PATH"] = "tickets.db"
    assert "TICKETSTORE_PATH is set, and nothing reads it" in project.apart("config").err
