"""Calls of a replayed program: each gets the outcome that is recorded of it, and nothing is called or recorded."""

from __future__ import annotations

from typing import Any, Final

import pytest

from remit.journal.event import HeadQuery
from remit.record.outcome import OutcomeView
from tests.opened import OpenRemit
from tests.service.desk import MAY, Desk

RUN: Final = "job/r"
TOOL: Final = "desk.write"
RULES: Final = "policy.rules"
SECRET: Final = {"id": "no-secret", "effect": "deny", "tools": [TOOL], "when": {"text": {"glob": "secret*"}}}
DENIED: Final = {RULES: [SECRET, *MAY[RULES]]}


async def called(remit_in: OpenRemit, texts: list[str], desk: Desk, **flags: Any) -> list[OutcomeView]:
    """Make calls in a session of an MCP client."""
    async with remit_in(providers=[desk], flags=flags) as remit:
        session = await remit.service.sessions.open("mcp", client="claude")
        return [await remit.service.sessions.call(session, TOOL, {"text": text}) for text in texts]


async def test_equal_calls_get_their_outcomes_in_turn_and_nothing_is_called(remit_in: OpenRemit) -> None:
    recorded = await called(remit_in, ["x", "y", "x"], Desk(), **MAY, **{"mcp.run": RUN})
    await called(remit_in, ["x"], Desk(), **MAY)
    desk = Desk()
    again = await called(remit_in, ["x", "x", "y", "x"], desk, **MAY, **{"mcp.replays": RUN})
    assert [outcome.value for outcome in recorded] == [{"notes": 1}, {"notes": 2}, {"notes": 3}]
    assert [outcome.value for outcome in again] == [{"notes": 1}, {"notes": 3}, {"notes": 2}, None]
    assert (again[-1].code, desk.written) == ("NONDETERMINISTIC", [])
    async with remit_in() as remit:
        heads = await remit.runtime.journal.heads(HeadQuery(kind="session"))
        assert [head.labels.get("run") for head in heads] == [None, RUN]


@pytest.mark.parametrize(
    ("then", "now", "codes"),
    [
        (MAY, DENIED, ["", "POLICY_DENIED"]),
        (DENIED, DENIED, ["", "POLICY_DENIED"]),
        (DENIED, MAY, ["", "POLICY_DENIED"]),
    ],
    ids=["refused today", "refused then and today", "refused then"],
)
async def test_what_either_day_refuses_is_refused(
    then: dict[str, Any], now: dict[str, Any], codes: list[str], remit_in: OpenRemit
) -> None:
    texts = ["x", "secret key"]
    recorded = await called(remit_in, texts, Desk(), **then, **{"mcp.run": RUN})
    again = await called(remit_in, texts, Desk(), **now, **{"mcp.replays": RUN})
    assert [outcome.code for outcome in again] == codes
    assert ("it ran" in again[1].reason) == recorded[1].ok


async def test_a_tool_that_is_gone_is_refused_as_today(remit_in: OpenRemit) -> None:
    await called(remit_in, ["x"], Desk(), **MAY, **{"mcp.run": RUN})
    async with remit_in(flags={**MAY, "mcp.replays": RUN}) as remit:
        session = await remit.service.sessions.open("mcp")
        outcome = await remit.service.sessions.call(session, TOOL, {"text": "x"})
    assert outcome.code == "UNKNOWN_TOOL"
