from __future__ import annotations

import json
import re
from typing import Any

import pytest

from remit import Remit, tool
from tests.pages.conftest import Served, token

pytestmark = pytest.mark.slow

DASH = "\N{EN DASH}"
HOSTILE = "<script>alert(1)</script>{{ 7*7 }}\u202e"
RULES: list[dict[str, Any]] = [
    {"id": "read", "effect": "allow", "tools": ["pad.read"]},
    {"id": "write-asks", "effect": "ask", "tools": ["pad.write"], "reason": HOSTILE, "approvers": ["ada", "bob"]},
    {"id": "wrong", "effect": "deny", "tools": ["pad.raed"]},
    {"id": "never", "effect": "deny", "tools": ["pad.write"], "when": {"text": {"equals": HOSTILE}}},
]


@tool("pad.read", level="L0")
def read() -> str:
    """Read."""
    return ""


@tool("pad.write", level="L1")
def write(text: str) -> str:
    """Write."""
    return text


def remit() -> Remit:
    return Remit(":memory:", tools=[read, write], policy=RULES)


async def test_each_rule_tells_what_it_decided_and_what_is_wrong_with_it(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        session = await opened.service.sessions.open("http", principal="ada")
        for name, args in (("pad.read", {}), ("pad.read", {}), ("pad.write", {"text": "a"})):
            await opened.service.sessions.call(session, name, args)
        text = (await browser.get("/policy")).text
        assert _hits(text, "read") == ["2", DASH, DASH]
        assert _hits(text, "write-asks") == [DASH, "1", DASH]
        assert "no call matched" in _row(text, "never")
        assert "It matches no tool of the catalog." in _row(text, "wrong")
        assert "Did you mean" in _row(text, "wrong")
        (question,) = await opened.service.confirmations.pending()
        for query, address, number in (
            ("rule=read", f"/sessions/{session}?step=", 2),
            ("rule=read&verdict=denied", f"/sessions/{session}", 0),
            ("rule=write-asks&verdict=asked", f"/inbox/{question.confirmation}", 1),
        ):
            assert (await browser.get(f"/policy/calls?{query}")).text.count(f'href="{address}') == number, query
        assert "ada or bob answers" in _row(text, "write-asks")
        assert "<script>alert" not in text
        assert "\u202e" not in text


async def test_a_call_is_explained_and_not_made(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        page = await browser.get("/policy")
        fields = [("csrf", page.csrf), ("tool", "pad.write"), ("kind", "session"), ("principal", "eve"), ("recipe", "")]
        got = await browser.send("/policy/explain", [*fields, ("args", '{"text": "x"}')])
        assert "ask</span> by <strong>write-asks</strong>" in got.text
        assert "ada or bob must approve" in got.text
        assert "does not hold" in got.text
        denied = await browser.send("/policy/explain", [*fields, ("args", _json(HOSTILE))])
        assert "deny</span> by <strong>never</strong>" in denied.text
        assert "<script>alert" not in denied.text
        assert (await browser.get("/policy/explain")).status == 200, "a reader may come back to the address"
        for wrong in ("{", "[1]"):
            refused = await browser.send("/policy/explain", [*fields, ("args", wrong)])
            assert refused.status == 400
            assert 'role="alert" id="wrong"' in refused.text
            assert 'value="pad.write"' in refused.text, "what was typed stays"
        assert await opened.service.sessions.rows() == []


async def test_a_remembered_approval_is_revoked_by_who_may_decide(served: Served) -> None:
    tokens = [token("ann", "read"), token("bob", "read", "decide")]
    async with remit() as opened, served(opened, tokens) as browser:
        session = await opened.service.sessions.open("http", principal="eve")
        asked = await opened.service.sessions.call(session, "pad.write", {"text": "a"})
        await opened.service.confirmations.decide(asked.confirmation, "approve", by="ada")
        kept = await opened.service.approvals.remember(
            asked.confirmation, "everything", seconds=60, exact=False, by="ada"
        )
        assert kept is not None
        await browser.log_in("secret-ann")
        page = await browser.get("/policy")
        assert "with any arguments" in page.text
        assert "Revoke" not in page.text
        path = f"/policy/remembered/{kept.id}/revoke"
        assert (await browser.send(path, [("csrf", page.csrf), ("reason", "")])).status == 403
        assert len(await opened.service.approvals.active()) == 1
        await browser.log_in("secret-bob")
        page = await browser.get("/policy")
        assert path in page.text
        assert (await browser.send(path, [("csrf", page.csrf), ("reason", "over")])).status == 303
        assert await opened.service.approvals.active() == []
        again = await browser.send(path, [("csrf", page.csrf), ("reason", "over")])
        assert again.status == 404


async def test_without_rules_the_page_says_where_they_are_written(served: Served) -> None:
    async with Remit(":memory:", policy=[]) as opened, served(opened) as browser:
        text = (await browser.get("/policy")).text
        assert "[[policy.rules]]" in text
        assert "None. Who answers a question" in text


def _row(text: str, rule: str) -> str:
    return text.partition(f'id="rule-{rule}"')[2].partition("</tr>")[0]


def _hits(text: str, rule: str) -> list[str]:
    cells = re.findall(r'class="number">(.*?)</td>', _row(text, rule))
    return [re.sub("<span.*?</span>|<[^>]*>", "", cell) for cell in cells]


def _json(text: str) -> str:
    return json.dumps({"text": text})
