"""LoadConfirmation: a call that waited for a person comes back with what the person decided on."""

from __future__ import annotations

from typing import Any

import pytest

from remit.canonical import digest
from remit.codes import Code
from remit.gateway.call import asked
from remit.journal.kinds import ConfirmationRequested, GateRefused, ToolInvocationStarted
from remit.tools.function import tool
from tests.gateway.samples import ALLOW, add, put, write
from tests.gateway.world import decide, opened

HELLO = {"text": "hello", "times": 1}


@tool("mcp.git.push", level="L1")
async def push(branch: str) -> str:
    """Push a branch."""
    return f"pushed {branch}"


@tool("mcp.git.tag", level="L1")
async def tag(branch: str) -> str:
    """Tag a branch."""
    return f"tagged {branch}"


async def test_an_approved_call_runs_when_it_comes_back() -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        assert (await world.again(pending, "note.write", HELLO)).value == {"written": 1}


async def test_an_edited_call_runs_with_the_edited_arguments(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        edited = await world.confirmations.edit(await world.question(pending), {"text": "bye", "times": 2}, "bob")
        still = await world.again(pending, "note.write", HELLO)
        assert (still.status, still.confirmation) == ("pending", edited.id)
        await world.approve(still)
        outcome = await world.again(pending, "note.write", HELLO)
        assert (outcome.value, ran) == ({"written": 2}, [("bye", 2)])
        started = await world.last(ToolInvocationStarted)
        assert await world.value(started, "args") == {"text": "bye", "times": 2}
        assert started.request_hash == asked("note.write", digest(HELLO))
        assert started.confirmation == edited.id


async def test_edits_are_told_apart_that_python_takes_for_equal(ran: list[object]) -> None:
    async with opened(write, schema_gate="off") as world:
        pending = await world.call("note.write", {"text": "x", "times": 1})
        edited = await world.confirmations.edit(await world.question(pending), {"text": "x", "times": True}, "bob")
        await decide(world.confirmations, edited, "approve", "bob")
        outcome = await world.again(pending, "note.write", {"text": "x", "times": 1})
        assert outcome.code is not Code.CONFIRMATION_REQUIRED
        assert await world.value(await world.last(ToolInvocationStarted), "args") == {"text": "x", "times": True}


async def test_edits_of_edits_are_followed(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        first = await world.confirmations.edit(await world.question(pending), {"text": "a"}, "bob")
        second = await world.confirmations.edit(first, {"text": "b"}, "carol")
        await decide(world.confirmations, second, "approve", "bob")
        for named in (pending.confirmation, first.id, second.id):
            await world.call("note.write", HELLO, confirmation=named)
        assert ran == [("b", 1)]


async def test_edited_arguments_pass_the_schema_again(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        edited = await world.confirmations.edit(await world.question(pending), {"text": 5}, "bob")
        await decide(world.confirmations, edited, "approve", "bob")
        assert (await world.again(pending, "note.write", HELLO)).code is Code.INVALID_TOOL_ARGS
        assert not ran


async def test_edited_arguments_pass_policy_again(ran: list[object]) -> None:
    no = {"id": "no-bombs", "effect": "deny", "tools": ["note.write"], "when": {"text": {"equals": "bomb"}}}
    async with opened(write, rules=[no]) as world:
        pending = await world.call("note.write", HELLO)
        edited = await world.confirmations.edit(await world.question(pending), {"text": "bomb"}, "bob")
        await decide(world.confirmations, edited, "approve", "bob")
        outcome = await world.again(pending, "note.write", HELLO)
        assert (outcome.code, (await world.last(GateRefused)).rule_id) == (Code.POLICY_DENIED, "no-bombs")
        assert not ran


@pytest.mark.parametrize(
    ("name", "args", "asked_for"),
    [
        ("note.write", {"text": "other"}, {}),
        ("note.set", {"text": "hello"}, {}),
        ("note.write", HELLO, {"step": "2"}),
        ("note.write", HELLO, {"principal": "mallory"}),
    ],
    ids=["other arguments", "another tool", "another step", "somebody else"],
)
async def test_an_approval_counts_for_nothing_but_its_own_call(
    name: str, args: dict[str, Any], asked_for: dict[str, Any], ran: list[object]
) -> None:
    async with opened(write, put) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        outcome = await world.again(pending, name, args, **asked_for)
        assert (outcome.status, outcome.code) == ("pending", Code.CONFIRMATION_REQUIRED)
        assert outcome.confirmation != pending.confirmation
        question = await world.question(outcome)
        assert (question.request.tool_name, question.args) == (name, args)
        assert not ran


async def test_an_approval_of_another_stream_is_not_found() -> None:
    async with opened(write) as world, opened(write) as other:
        pending = await other.call("note.write", HELLO)
        await other.approve(pending)
        assert (await world.again(pending, "note.write", HELLO)).confirmation != pending.confirmation


async def test_a_confirmation_nobody_knows_does_not_stop_a_call_that_needs_none() -> None:
    async with opened(add) as world:
        assert (await world.call("math.add", {"a": 1, "b": 1}, confirmation="c_nobody")).value == 2


async def test_a_question_that_a_recipe_asked_approves_no_call() -> None:
    async with opened(write, add) as world:
        request = ConfirmationRequested(confirmation="c_1", step="1", digest="sha256:0", question="Go on?")
        question, _ = world.confirmations.open(world.stream, request, {"tool": 2**70}, "Go on?")
        await world.journal.commit(question, synced=True)
        outcome = await world.call("note.write", HELLO, confirmation="c_1")
        assert (outcome.status, outcome.confirmation == "c_1") == ("pending", False)


async def test_a_call_by_key_is_recalled_as_the_tool_and_arguments_it_stood_for() -> None:
    async with opened(push, tag) as world:
        args = {"operation": "push", "branch": "main"}
        pending = await world.call("git", args)
        question = await world.question(pending)
        assert (question.request.tool_name, question.args) == ("mcp.git.push", {"branch": "main"})
        await world.approve(pending)
        assert (await world.again(pending, "git", args)).value == "pushed main"


async def test_an_approval_for_one_tool_of_a_key_does_not_cover_another() -> None:
    async with opened(push, tag) as world:
        pending = await world.call("git", {"operation": "push", "branch": "main"})
        await world.approve(pending)
        outcome = await world.again(pending, "git", {"operation": "tag", "branch": "main"})
        assert (outcome.status, outcome.confirmation == pending.confirmation) == ("pending", False)


async def test_arguments_without_a_canonical_form_recall_nothing() -> None:
    async with opened(write, rules=[ALLOW]) as world:
        outcome = await world.call("note.write", {"text": float("nan")}, confirmation="c_1")
        assert outcome.code is Code.INVALID_TOOL_ARGS
