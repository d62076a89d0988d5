"""Calls that a model wanted are found again in what clients brought to gates, or are said to have run ungoverned."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from remit import Remit, tool
from remit.record.client_calls import ClientCalls
from remit.settings import load
from remit.tools.function import FunctionTool


@tool("notes.read", level="L0")
def read(path: str) -> str:
    """Read."""
    return path


@tool("notes.write")
def write(path: str) -> str:
    """Write."""
    return path


TOOLS: list[FunctionTool[..., object]] = [read, write]


@pytest.fixture
async def remit() -> AsyncIterator[Remit]:
    rules = [{"effect": "deny", "tools": ["notes.write"]}]
    settings = load(env={}, flags={"journal.url": ":memory:", "policy.rules": rules})
    async with Remit(tools=TOOLS, settings=settings, work=False) as opened:
        yield opened


async def gates(remit: Remit) -> ClientCalls:
    return ClientCalls(remit.runtime.journal, remit.clock.now())


@pytest.mark.parametrize("name", ["call_id", "claudecode/toolUseId", "callId"])
@pytest.mark.parametrize("called", ["notes.read", "notes.write", "notes.unknown"])
async def test_a_call_is_known_by_its_identifier_whatever_the_gate_said(remit: Remit, name: str, called: str) -> None:
    seen = await gates(remit)
    session = await remit.service.sessions.open("hook")
    await remit.service.sessions.call(session, called, {"path": "a"}, client={name: "call_1"})
    assert await seen.unseen({"call_1": "Bash", "call_2": "Bash"}) == {"call_2": "Bash"}


async def test_a_call_without_an_identifier_is_joined_by_its_tool_and_once(remit: Remit) -> None:
    seen = await gates(remit)
    session = await remit.service.sessions.open("mcp")
    await remit.service.sessions.call(session, "notes.read", {"path": "a"})
    await remit.service.sessions.call(session, "notes.read", {"path": "a"}, client={"tool": "run_shell_command"})
    wanted = {"1": "mcp__remit__notes_read", "2": "mcp__remit__notes_read", "3": "run_shell_command", "4": "edit"}
    assert await seen.unseen(wanted) == {"2": "mcp__remit__notes_read", "4": "edit"}


async def test_a_call_that_came_later_is_seen_and_one_before_the_run_is_not(remit: Remit) -> None:
    session = await remit.service.sessions.open("hook")
    await remit.service.sessions.call(session, "notes.read", {"path": "a"}, client={"call_id": "before"})
    seen = await gates(remit)
    assert await seen.unseen({"before": "Bash", "later": "Bash"}) == {"before": "Bash", "later": "Bash"}
    await remit.service.sessions.call(session, "notes.read", {"path": "b"}, client={"call_id": "later"})
    assert await seen.unseen({"later": "Bash"}) == {}
