"""Rules and roots that an agent talks around: spellings, types, links and characters (reviews s02)."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from remit import tool
from remit.codes import Code
from remit.errors import PolicyError
from remit.policy.decision import Caller, Query
from remit.policy.rules import Policy
from remit.tools.meta import Level, ToolMeta
from tests.opened import OpenRemit

READS = int(os.environ.get("REMIT_TEST_READS", "40"))
"""How often a folder is read that is swapped for a link meanwhile."""
CALLER = Caller(principal="alice", kind="session", recipe="", stream="session/x")
NAN = float("nan")


def effect(when: dict[str, Any], args: dict[str, Any], effect: str = "allow", tool: str = "hub.do", **more: Any) -> str:
    """What one rule, under which everything else is asked about, makes of a call."""
    rules = [{"effect": effect, "tools": ["hub.*"], "when": when, **more}]
    if effect == "deny":
        rules.append({"effect": "allow", "tools": ["*"]})
    meta = ToolMeta(name=tool, provider_id="local", capability_level=Level.L1)
    return Policy.parse(rules).decide(Query(tool=meta, key=tool, args=args, caller=CALLER)).effect


@pytest.mark.parametrize(
    "path",
    [
        "docs/../x", "docs/..", "../docs/a", "/docs/a", "//docs/a", "docs\\..\\x", "docs/%2e%2e/x", "docs/a\x00",
        "\uff44ocs/a", "~/docs/a", "C:docs/a", "C:\\docs\\a", "docs/\u200b../x", "docs/a\u202e", "docs/./../../x",
        "file:///docs/a", "docs", "", " docs/a", ["docs/a", "x"], {"p": "docs/a"}, 7, None, True, [],
    ],
)  # fmt: skip
def test_an_allowed_folder_is_not_left_by_a_spelling(path: object) -> None:  # P01, P02, P06
    assert effect({"path": {"glob": ["docs/**"]}}, {"path": path}) == "ask"
    assert effect({"path": {"glob": ["docs/**"]}}, {"Path": "docs/a"}) == "ask"
    assert effect({"path": {"glob": ["docs/**"]}}, {"path": "docs/a"}) == "allow"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.acme.com.evil/a", "https://evil/api.acme.com/a", "https://api.acme.com@evil/a",
        "https://user:p@api.acme.com@evil/a", "http://api.acme.com/a", "https://api.acme.com:444/a",
        "https://api.acme.com/../../evil", "https:/api.acme.com/a", "https:\\\\api.acme.com\\a", "//api.acme.com/a",
        "https://api.acme.com\\@evil/a", "https://api.acme.com%2eevil/a", "https://API.acme.com.\u3002evil/a",
        "\thttps://evil/https://api.acme.com/a", "https://api.acme.com#@evil/a", "https://api.acme.com?@evil/a",
        "javascript:https://api.acme.com/a",
    ],
)  # fmt: skip
def test_an_allowed_host_is_not_left_by_a_spelling(url: str) -> None:  # P03
    assert effect({"url": {"glob": ["https://api.acme.com/**"]}}, {"url": url}) == "ask"


@pytest.mark.parametrize("amount", ["1000000", "99", True, None, [1, 999_999], {"v": 1}, [], 101, 1e300, NAN])
def test_an_amount_that_cannot_be_told_is_asked_about(amount: object) -> None:  # P04
    assert effect({"amount": {"max": 100}}, {"amount": amount}) == "ask"


@pytest.mark.parametrize("amount", [-1e9, 99.999999999999999999])
def test_an_amount_below_is_below_whatever_its_sign(amount: float) -> None:  # P04: `min = 0` where that matters
    assert effect({"amount": {"max": 100}}, {"amount": amount}) == "allow"
    assert effect({"amount": {"min": 0, "max": 100}}, {"amount": -1e9}) == "ask"


@pytest.mark.parametrize("method", [["GET", "DELETE"], [["GET"], ["DELETE"]], {"m": "GET"}, "get\x00", None])
def test_a_list_hides_no_other_word(method: object) -> None:  # P05
    assert effect({"method": {"in": ["GET"]}}, {"method": method}) == "ask"


@pytest.mark.parametrize(
    "path",
    [
        "secrets/x", "SECRETS/x", "Secrets/X", "./secrets/x", "a/../secrets/x", "secrets//x", "secrets\\x",
        "secrets%2fx", "%73ecrets/x", "\uff53ecrets/x", "\u017fecrets/x", "/secrets/x", "secrets/./x", "secrets/x/",
        "secrets\x00/x", "sec\u200brets/x", "sec\u00adrets/x", "\u200bsecrets/x", "secrets\u200b/x",
        "secrets./x", "secrets /x", "secrets/x::$DATA", "secrets%5cx", "secrets%255cx", "%252573ecrets/x",
        "secrets\uff0fx", "C:\\secrets\\x", "//host/secrets/x", "SECRETS\\X", " secrets/x",
        ["a", "secrets/x"], [["secrets/x"]], {"deep": ["secrets/x"]}, {"secrets/x": 1}, 7, None, True,
        "file:///secrets/x", "file://secrets/x",
    ],
)  # fmt: skip
def test_a_denied_folder_is_denied_in_every_spelling(path: object) -> None:  # P07, P07b, P08
    assert effect({"path": {"glob": ["secrets/**", "**/secrets/**"]}}, {"path": path}, "deny") == "deny"


@pytest.mark.parametrize(
    "method", ["DELETE", "delete", " DELETE ", "DELETE\n", "\uff24ELETE", "DELETE\u200b", "DE\x00LETE", "DEL\u00adETE"]
)
def test_a_denied_word_is_denied_in_every_spelling(method: str) -> None:  # P09
    assert effect({"method": {"in": ["DELETE"]}}, {"method": method}, "deny") == "deny"


@tool("hub.do", level="L1")
async def do() -> str:
    """Do something."""
    return "done"


@tool("hubs.do", level="L0")
async def other() -> str:
    """Look at something."""
    return "looked"


@pytest.mark.parametrize("name", ["hub.do", "hub__do", "Hub.do", "HUB.DO", "hub.do ", "hub.d\u043e", "hub"])
async def test_a_denied_tool_has_no_name_under_which_it_runs(remit_in: OpenRemit, name: str) -> None:  # P11
    rules = [ALL, {"effect": "deny", "tools": ["hub.*"]}]
    async with remit_in(tools=[do, other], flags={"policy.rules": rules}, work=False) as remit:
        assert (await remit.call(name, {})).code in {Code.POLICY_DENIED, Code.UNKNOWN_TOOL}
        assert (await remit.call("hubs.do", {})).ok


@pytest.mark.parametrize(
    "rule",
    [
        {"Effect": "allow"},
        {"effect": "allow", "when": {"path": {"regex": ".*"}}},
        {"effect": "allow", "when": {"__class__": {"equals": "x"}}, "__class__": "x"},
        {"effect": "allow", "tools": []},
    ],
)
def test_a_rule_that_says_something_else_is_refused(rule: dict[str, Any]) -> None:  # P14
    with pytest.raises(PolicyError, match="rule 1"):
        Policy.parse([rule])


@pytest.mark.parametrize("path", ["a/" * 200_000, "../" * 80_000, "a/b/" * 30_000, "\u0301" * 100_000, "%" * 300_000])
def test_a_path_without_an_end_lets_nothing_through(path: str) -> None:  # P12
    assert effect({"path": {"glob": ["docs/**/a/**/b"]}}, {"path": path}) == "ask"


@pytest.mark.parametrize("principal", ["Alice", "alice ", "alice\x00", "\u0430lice", "alice\u200b", ""])
def test_another_name_is_another_caller(principal: str) -> None:  # P13
    rules = [{"effect": "allow", "tools": ["hub.*"], "callers": ["alice"]}]
    meta = ToolMeta(name="hub.do", provider_id="local", capability_level=Level.L1)
    caller = Caller(principal=principal, kind="session", recipe="", stream="session/x")
    assert Policy.parse(rules).decide(Query(tool=meta, key="hub.do", args={}, caller=caller)).effect == "ask"


@pytest.fixture
def rooted(tmp_path: Path) -> Path:
    """A root with everything in it that leads out."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "docs").mkdir(parents=True)
    outside.mkdir()
    (outside / "key").write_text("TOPSECRET", encoding="utf-8")
    (root / "link").symlink_to(outside)
    (root / "docs/l.txt").symlink_to(outside / "key")
    (root / "proc").symlink_to("/proc/self/root")
    os.mkfifo(root / "docs/pipe")
    return root


OUTSIDE = {
    "F01": "link/key",
    "F02": "docs/l.txt",
    "F03": "../outside/key",
    "F03 deeper": "docs/../../outside/key",
    "F04": "/etc/passwd",
    "F05": "proc/etc/passwd",
    "F06": "/proc/self/environ",
    "F07": "docs/\x00key",
    "F08": "\ud800",
    "F09": "docs/pipe",
    "F10": ".remit/journal.db",
    "F11": ".REMIT/journal.db",
    "F12": "x" * 5_000,
    "F13": "a/" * 100 + "x",
    "F14": "//etc/passwd",
    "F15": "~/key",
    "F15 root": "~root/key",
    "F16": "file:///etc/passwd",
    "F17": "/dev/zero",
}
ALL = {"id": "all", "effect": "allow", "tools": ["*"]}


@pytest.mark.parametrize("name", OUTSIDE)
async def test_no_path_leads_out_of_the_root(rooted: Path, remit_in: OpenRemit, name: str) -> None:
    kept = {path: path.stat().st_mtime_ns for path in (rooted.parent / "outside").iterdir()}
    async with remit_in(flags={"fs.roots": [str(rooted)], "policy.rules": [ALL]}, work=False) as remit:
        read = await remit.call("fs.read", {"path": OUTSIDE[name]})
        written = await remit.call("fs.write", {"path": OUTSIDE[name], "content": "x"})
        edited = await remit.call("fs.edit", {"path": OUTSIDE[name], "edits": [{"find": "TOP", "replace": "x"}]})
    refusals = {Code.PATH_NOT_ALLOWED, Code.INVALID_TOOL_ARGS, Code.TOOL_EXEC_FAILED, Code.FOLDER_NOT_FOUND}
    assert [one.code in refusals for one in (read, written, edited)] == [True] * 3
    assert "TOPSECRET" not in str((read, written, edited))
    assert {path: path.stat().st_mtime_ns for path in (rooted.parent / "outside").iterdir()} == kept


async def test_a_hard_link_is_a_file_of_the_root(rooted: Path, remit_in: OpenRemit) -> None:  # F18, F23
    (rooted / "docs/hard").hardlink_to(rooted.parent / "outside/key")
    async with remit_in(flags={"fs.roots": [str(rooted)], "policy.rules": [ALL]}, work=False) as remit:
        assert (await remit.call("fs.read", {"path": "docs/hard"})).value["text"] == "TOPSECRET"
        assert (await remit.call("fs.write", {"path": "docs/hard", "content": "x"})).ok
    assert (rooted.parent / "outside/key").read_text(encoding="utf-8") == "TOPSECRET", "the other name keeps it"


async def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(rooted: Path, remit_in: OpenRemit) -> None:  # F19
    (rooted / "swap").mkdir()
    (rooted / "swap/key").write_text("harmless", encoding="utf-8")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (rooted / "swap").rename(rooted / "aside")
            (rooted / "swap").symlink_to(rooted.parent / "outside")
            (rooted / "swap").unlink()
            (rooted / "aside").rename(rooted / "swap")

    thread = threading.Thread(target=swap)
    async with remit_in(flags={"fs.roots": [str(rooted)], "policy.rules": [ALL]}, work=False) as remit:
        thread.start()
        try:
            outcomes = [await remit.call("fs.read", {"path": "swap/key"}) for _ in range(READS)]
        finally:
            done.set()
            thread.join()
    assert "TOPSECRET" not in str(outcomes)
    assert {outcome.value["text"] for outcome in outcomes if outcome.ok} <= {"harmless"}
