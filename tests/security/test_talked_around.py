"""Rules and roots that an agent talks around: spellings, types, links and characters (reviews s02)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.policy.decision import Caller, Query
from remit.policy.rules import Policy
from remit.tools.meta import Level, ToolMeta
from tests.opened import OpenRemit

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


@pytest.mark.parametrize("method", [["GET", "DELETE"], [["GET"], ["DELETE"]], {"m": "GET"}, "get\x00", None])
def test_a_list_hides_no_other_word(method: object) -> None:  # P05
    assert effect({"method": {"in": ["GET"]}}, {"method": method}) == "ask"


@pytest.mark.parametrize(
    "path",
    [
        "secrets/x", "SECRETS/x", "Secrets/X", "./secrets/x", "a/../secrets/x", "secrets//x", "secrets\\x",
        "secrets%2fx", "%73ecrets/x", "\uff53ecrets/x", "\u017fecrets/x", "/secrets/x", "secrets/./x", "secrets/x/",
        "secrets\x00/x", "sec\u200brets/x", "sec\u00adrets/x", "\u200bsecrets/x", "secrets\u200b/x",
        ["a", "secrets/x"], {"deep": ["secrets/x"]}, "file:///secrets/x",
    ],
)  # fmt: skip
def test_a_denied_folder_is_denied_in_every_spelling(path: object) -> None:  # P07, P07b, P08
    assert effect({"path": {"glob": ["secrets/**", "**/secrets/**"]}}, {"path": path}, "deny") == "deny"


@pytest.mark.parametrize(
    "method", ["DELETE", "delete", " DELETE ", "DELETE\n", "\uff24ELETE", "DELETE\u200b", "DE\x00LETE", "DEL\u00adETE"]
)
def test_a_denied_word_is_denied_in_every_spelling(method: str) -> None:  # P09
    assert effect({"method": {"in": ["DELETE"]}}, {"method": method}, "deny") == "deny"


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


@pytest.mark.parametrize("tool", ["fs.read", "fs.write"])
@pytest.mark.parametrize(
    "path",
    [
        "link/key", "docs/l.txt", "../outside/key", "docs/../../outside/key", "/etc/passwd", "//etc/passwd",
        "proc/etc/passwd", "/proc/self/environ", "docs/\x00key", "\ud800", "docs/pipe", "x" * 5_000, "a/" * 100 + "x",
        "~/key", "~root/key", "file:///etc/passwd", "/dev/zero", ".remit/journal.db", ".REMIT/journal.db",
    ],
)  # fmt: skip
async def test_no_path_leads_out_of_the_root(
    rooted: Path, remit_in: OpenRemit, tool: str, path: str
) -> None:  # F01-F17, F23
    flags = {"fs.roots": [str(rooted)], "policy.rules": [{"effect": "allow", "tools": ["*"]}]}
    async with remit_in(flags=flags, work=False) as remit:
        more = {"content": "x"} if tool == "fs.write" else {}
        outcome = await remit.call(tool, {"path": path, **more})
    assert not outcome.ok or tool == "fs.write"
    assert "TOPSECRET" not in str(outcome)
    assert outcome.ok or outcome.code in {Code.PATH_NOT_ALLOWED, Code.INVALID_TOOL_ARGS, Code.TOOL_EXEC_FAILED}
    assert (rooted.parent / "outside/key").read_text(encoding="utf-8") == "TOPSECRET"
