"""RecordRefusal: every refusal leaves a record."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.kinds import GateRefused
from tests.gateway.samples import ALLOW, add, write
from tests.gateway.world import opened

HELLO = {"text": "hello", "times": 1}
NO = {"id": "no-notes", "effect": "deny", "tools": ["note.*"]}


@pytest.mark.parametrize(
    ("name", "args", "asked", "stage"),
    [
        ("nobody.knows", {}, {}, "resolve"),
        ("note.write", HELLO, {}, "authorize"),
        ("math.add", {"a": "x", "b": 1}, {}, "validate_arguments"),
        ("math.add", {"a": 1, "b": 1}, {"timeout_s": -1}, "validate_arguments"),
    ],
)
async def test_the_record_names_the_stage_that_refused(
    name: str, args: dict[str, Any], asked: dict[str, Any], stage: str
) -> None:
    async with opened(add, write, rules=[NO]) as world:
        outcome = await world.call(name, args, **asked)
        assert outcome.status == "blocked"
        refused = await world.last(GateRefused)
        assert (refused.stage, refused.code) == (stage, str(outcome.code))
        assert (refused.reason, refused.remedy) == (outcome.reason, outcome.remedy)


async def test_a_call_that_ran_or_waits_is_not_recorded_as_refused() -> None:
    async with opened(add, write) as world:
        await world.call("math.add", {"a": 1, "b": 2})
        await world.call("note.write", HELLO, step="2")
        assert "gate_refused" not in await world.kinds()


async def test_the_arguments_hash_is_the_one_that_was_asked_for() -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        asked = (await world.question(pending)).request
        await world.confirmations.edit(await world.question(pending), {"text": 5}, "bob")
        await world.again(pending, "note.write", HELLO)
        refused = await world.last(GateRefused)
        assert refused.code == "INVALID_TOOL_ARGS"
        async with opened(write, rules=[NO]) as other:
            await other.call("note.write", HELLO)
            assert refused.arguments_hash == (await other.last(GateRefused)).arguments_hash
        assert asked.digest != refused.arguments_hash


async def test_a_refusal_leaves_the_process_only_once_it_is_durable() -> None:
    async with opened(add) as world:
        await world.call("nobody.knows", leaves=True)
        assert world.store.diary == ["submitted gate_refused", "durable gate_refused"]
        await world.call("nobody.knows", step="2")
        assert world.store.diary[2:] == ["submitted gate_refused"]


async def test_where_nothing_can_be_recorded_any_more_the_call_raises() -> None:
    async with opened(add) as world:
        world.writer.fail(JournalError("the disk is full", code=Code.JOURNAL_FULL))
        with pytest.raises(JournalError) as raised:
            await world.call("nobody.knows")
        assert raised.value.code is Code.JOURNAL_FULL


async def test_an_open_question_is_withdrawn_with_the_reason_of_the_refusal() -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        world.under([NO])
        outcome = await world.again(pending, "note.write", HELLO)
        found = await world.question(pending)
        assert found.last is not None
        assert (found.state, found.last.decision, found.last.reason) == ("withdrawn", "revoke", outcome.reason)


async def test_a_crash_between_the_end_of_a_question_and_the_refusal_leaves_nobody_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        world.under([NO])

        written: list[object] = []

        def dies_after_one(write: Any) -> Any:
            async def writes(*args: Any, **more: Any) -> None:
                if written:
                    raise asyncio.CancelledError
                written.append(args)
                await write(*args, **more)

            return writes

        with monkeypatch.context() as crash:
            for how in ("append", "commit"):
                crash.setattr(world.journal, how, dies_after_one(getattr(world.journal, how)))
            with pytest.raises(asyncio.CancelledError):
                await world.again(pending, "note.write", HELLO)
        assert await world.confirmations.pending() == []
        assert (await world.again(pending, "note.write", HELLO)).code is Code.POLICY_DENIED


async def test_who_cannot_record_the_refusal_ends_no_question() -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        world.under([NO])
        world.writer.supersede()
        with pytest.raises(AppendConflictError):
            await world.again(pending, "note.write", HELLO)
        assert (await world.question(pending)).state == "pending"


async def test_a_question_that_was_decided_at_the_same_moment_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        world.under([NO])
        withdraw = world.confirmations.withdraw

        async def overtaken(found: Any, reason: str) -> bool:
            await world.deny(pending)
            return await withdraw(found, reason)

        monkeypatch.setattr(world.confirmations, "withdraw", overtaken)
        assert (await world.again(pending, "note.write", HELLO)).code is Code.POLICY_DENIED
        assert (await world.question(pending)).state == "denied"


async def test_a_used_approval_is_not_withdrawn_by_a_second_use() -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        await world.again(pending, "note.write", HELLO)
        assert (await world.again(pending, "note.write", HELLO)).code is Code.CONFIRMATION_MISMATCH
        assert (await world.question(pending)).state == "used"


async def test_refusals_are_what_the_code_table_calls_blocked() -> None:
    async with opened(add, rules=[ALLOW]) as world:
        outcome = await world.call("nobody.knows")
        assert outcome.code is not None
        assert outcome.code.status == outcome.status
