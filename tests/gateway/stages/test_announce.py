"""Announce: the intent is in the journal before anything happens (rule 3)."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import pytest

from remit.canonical import digest
from remit.errors import JournalError
from remit.journal.kinds import ToolInvocationStarted
from remit.tools.meta import Level, Risk
from remit.tools.provider import CallContext, ToolResult
from tests.gateway.samples import ALLOW, add, put, write
from tests.gateway.world import ALICE, odd, opened

HELLO = {"text": "hello", "times": 1}


async def test_the_announcement_says_what_will_run_in_which_versions_for_whom() -> None:
    async with opened(odd(lambda _a, _c: ToolResult(None), version="2.1", idempotent=True)) as world:
        outcome = await world.call(args={"x": 1}, step="4.0.1", attempt=3)
        started = await world.last(ToolInvocationStarted)
        tool, _ = await world.catalog.resolve("odd.tool", {})
        assert started.invocation_id == outcome.invocation_id
        assert started == ToolInvocationStarted(
            invocation_id=outcome.invocation_id or "",
            step="4.0.1",
            tool_name="odd.tool",
            arguments_hash=digest({"x": 1}),
            idempotency_key=started.idempotency_key,
            tool_version="2.1",
            request_schema_hash=tool.input.hash,
            args=started.args,
            capability_level=0,
            risk_level="read_only",
            provider_id="odd",
            side_effect="read",
            repeatable=True,
            attempt=3,
            principal=ALICE,
            rule_id="default:L0",
            policy_hash=world.policy.hash,
            contract_hash=tool.contract_hash,
            prompt_hash=tool.prompt_hash,
            trace_id=started.trace_id,
            span_id=started.span_id,
            policy_kept=True,
        )
        assert await world.value(started, "args") == {"x": 1}
        assert re.fullmatch("inv_[0-9a-z]{26}", started.invocation_id)
        assert re.fullmatch("[0-9a-f]{16}", started.span_id)
        assert re.fullmatch("[0-9a-f]{32}", started.trace_id)


@pytest.mark.parametrize(
    ("changes", "side_effect", "repeatable"),
    [
        ({}, "write", False),
        ({"idempotent": True}, "write", True),
        ({"risk_level": Risk.UNKNOWN}, "unknown", False),
        ({"side_effects": False, "risk_level": Risk.READ_ONLY}, "read", True),
    ],
)
async def test_the_announcement_says_what_a_repetition_would_do(
    changes: dict[str, Any], side_effect: str, repeatable: bool
) -> None:
    async with opened(odd(lambda _a, _c: ToolResult(None), Level.L1, **changes), rules=[ALLOW]) as world:
        await world.call()
        started = await world.last(ToolInvocationStarted)
        assert (started.side_effect, started.repeatable, started.capability_level) == (side_effect, repeatable, 1)


async def test_every_attempt_of_one_intent_has_one_idempotency_key_and_its_own_invocation() -> None:
    async with opened(put, rules=[ALLOW]) as world:
        keys, invocations = set(), set()
        for attempt in (1, 2, 3):
            await world.call("note.set", {"text": "x"}, attempt=attempt)
            started = await world.last(ToolInvocationStarted)
            keys.add(started.idempotency_key)
            invocations.add(started.invocation_id)
        intent = "\0".join((world.stream, "1", "note.set", digest({"text": "x"})))
        assert keys == {sha256(intent.encode()).hexdigest()}
        assert len(invocations) == 3


async def test_another_step_tool_or_argument_is_another_intent() -> None:
    async with opened(put, write, rules=[ALLOW]) as world:
        keys = set()
        for name, args, step in (
            ("note.set", {"text": "x"}, "1"),
            ("note.set", {"text": "x"}, "2"),
            ("note.set", {"text": "y"}, "1"),
            ("note.write", {"text": "x"}, "1"),
        ):
            await world.call(name, args, step=step)
            keys.add((await world.last(ToolInvocationStarted)).idempotency_key)
        assert len(keys) == 4


async def test_the_provider_gets_the_key_and_the_place_of_its_call() -> None:
    seen: list[CallContext] = []

    def behave(_args: Any, ctx: CallContext) -> ToolResult:
        seen.append(ctx)
        return ToolResult(None)

    async with opened(odd(behave)) as world:
        await world.call(step="7", attempt=2)
        started = await world.last(ToolInvocationStarted)
        (ctx,) = seen
        assert (ctx.stream, ctx.step, ctx.attempt, ctx.principal) == (world.stream, "7", 2, ALICE)
        assert ctx.invocation_id == started.invocation_id
        assert ctx.idempotency_key == started.idempotency_key
        assert ctx.span_id == started.span_id
        assert re.fullmatch("[0-9a-f]{32}", ctx.trace_id)
        assert ctx.now == world.clock.now()


async def test_a_side_effect_is_announced_durably_before_the_provider_is_called() -> None:
    diary: list[str] = []

    def behave(_args: Any, _ctx: Any) -> ToolResult:
        diary.append("called")
        return ToolResult(None)

    async with opened(odd(behave, Level.L1), rules=[ALLOW]) as world:
        diary = world.store.diary
        await world.call()
        assert diary[:3] == [
            "submitted tool_invocation_started",
            "durable tool_invocation_started",
            "called",
        ]


async def test_a_read_is_announced_first_too_but_does_not_wait_for_the_disk() -> None:
    diary: list[str] = []

    def behave(_args: Any, _ctx: Any) -> ToolResult:
        diary.append("called")
        return ToolResult(None)

    async with opened(odd(behave)) as world:
        diary = world.store.diary
        await world.call()
        assert diary == ["submitted tool_invocation_started", "called", "submitted tool_invocation_finished"]
        assert not world.store.commit_of("tool_invocation_started").synced


async def test_large_arguments_are_kept_by_digest() -> None:
    async with opened(write, rules=[ALLOW]) as world:
        args = {"text": "secret=hunter2hunter2 " * 1_000}
        assert (await world.call("note.write", args)).ok
        started = await world.last(ToolInvocationStarted)
        assert await world.value(started, "args") == args
        assert "hunter2" not in started.args_blob.preview  # type: ignore[union-attr] # it is there, as was just shown


async def test_nothing_is_called_when_the_announcement_cannot_be_written(ran: list[object]) -> None:
    async with opened(write, add, rules=[ALLOW]) as world:
        await world.call("math.add", {"a": 1, "b": 2})
        ran.clear()
        world.writer.fail(JournalError("the disk is full"))
        with pytest.raises(JournalError, match="full"):
            await world.call("note.write", HELLO)
        with pytest.raises(JournalError, match="full"):
            await world.call("math.add", {"a": 1, "b": 2})
        assert not ran


async def test_an_approval_survives_an_announcement_that_could_not_be_written(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        healthy = world.writer
        world.writer = world.journal.writer(world.stream, "session", None)
        with pytest.raises(JournalError):
            await world.again(pending, "note.write", HELLO)
        assert (await world.question(pending)).state == "approved"
        assert not ran
        world.writer = healthy
        assert (await world.again(pending, "note.write", HELLO)).ok
