"""Confirm: a person approves this exact call, or it does not run (rule 7)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import JournalError
from remit.gateway.confirmation import binding, stream_of
from remit.journal.kinds import (
    ConfirmationRequested,
    ConfirmationUsed,
    GateRefused,
    ToolInvocationStarted,
)
from remit.tools.function import tool
from remit.tools.meta import Level
from remit.tools.provider import ToolResult
from tests.gateway.samples import ALLOW, add, put, write
from tests.gateway.world import ALICE, decide, odd, opened

HELLO = {"text": "hello", "times": 1}
ASK_TWO = {"id": "two", "effect": "ask", "tools": ["note.*"], "approvals": 2}
OTHER = {"id": "other", "effect": "deny", "tools": ["nothing.*"]}
"""Changes the policy, and nothing of what these tests call."""


async def test_a_call_that_has_to_be_approved_is_pending_and_has_not_run(ran: list[object]) -> None:
    async with opened(write) as world:
        outcome = await world.call("note.write", HELLO)
        assert (outcome.status, outcome.code) == ("pending", Code.CONFIRMATION_REQUIRED)
        assert outcome.confirmation is not None
        assert outcome.confirmation in outcome.remedy
        assert outcome.invocation_id is None
        assert not ran


async def test_the_question_holds_the_whole_call_and_the_callers_stream_who_waits_for_it() -> None:
    async with opened(write) as world:
        outcome = await world.call("note.write", HELLO)
        identifier = outcome.confirmation or ""
        tool, _ = await world.catalog.resolve("note.write", HELLO)
        digest = binding(
            stream=world.stream,
            step="1",
            tool="note.write",
            contract_hash=tool.contract_hash,
            args=HELLO,
            principal=ALICE,
            policy_hash=world.policy.hash,
            tool_version="",
            provider_id="local",
            capability_level=1,
            prompt_hash=tool.prompt_hash,
        )
        expires = world.clock.now() + 86_400 * SECOND
        assert await world.recorded() == [
            ConfirmationRequested(
                confirmation=identifier, step="1", digest=digest, tool_name="note.write", expires_at=expires
            )
        ]
        asked = await world.last(ConfirmationRequested, stream_of(world.stream, identifier))
        assert await world.value(asked, "args") == HELLO
        assert (asked.principal, asked.rule_id, asked.digest) == (ALICE, "default:L1", digest)
        assert (asked.contract_hash, asked.policy_hash) == (tool.contract_hash, world.policy.hash)
        assert (asked.provider_id, asked.capability_level, asked.prompt_hash) == ("local", 1, tool.prompt_hash)
        assert (asked.question, asked.expires_at) == ("The tool writes, and no rule allows this call.", expires)


async def test_question_and_waiting_are_recorded_in_one_durable_transaction() -> None:
    async with opened(write) as world:
        await world.call("note.write", HELLO)
        assert world.store.diary == [
            "submitted confirmation_requested+confirmation_requested",
            "durable confirmation_requested+confirmation_requested",
        ]


async def test_the_title_that_lists_show_hides_secrets() -> None:
    async with opened(odd(lambda _a, _c: ToolResult(None), Level.L1)) as world:
        pending = await world.call(args={"password": "hunter2hunter2", "note": "x" * 1_000})
        title = (await world.question(pending)).head.title
        assert title.startswith('odd.tool {"password":"********","note":"xxx')
        assert len(title) <= 220


async def test_an_approval_is_used_once(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        assert (await world.again(pending, "note.write", HELLO)).ok
        second = await world.again(pending, "note.write", HELLO)
        assert (second.status, second.code) == ("blocked", Code.CONFIRMATION_MISMATCH)
        assert second.confirmation == pending.confirmation
        assert (await world.last(GateRefused)).stage == "confirm"
        assert (await world.question(pending)).state == "used"
        assert len(ran) == 1


async def test_two_calls_at_once_use_an_approval_once_and_neither_harms_the_stream(ran: list[object]) -> None:
    async with opened(write, add) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        outcomes = await asyncio.gather(*(world.again(pending, "note.write", HELLO) for _ in range(5)))
        assert sorted(str(outcome.code) for outcome in outcomes) == ["CONFIRMATION_MISMATCH"] * 4 + ["None"]
        assert len(ran) == 1
        assert (await world.call("math.add", {"a": 1, "b": 2}, step="2")).ok
        assert (await world.kinds()).count("tool_invocation_started") == 2


async def test_the_approval_is_spent_in_the_transaction_that_announces_the_call() -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        outcome = await world.again(pending, "note.write", HELLO)
        commit = world.store.commit_of("confirmation_used")
        assert [event.kind for append in commit.appends for event in append.events] == [
            "tool_invocation_started",
            "confirmation_used",
        ]
        assert commit.synced
        used = await world.last(ConfirmationUsed, stream_of(world.stream, pending.confirmation or ""))
        assert used.invocation_id == outcome.invocation_id
        assert (await world.last(ToolInvocationStarted)).confirmation == pending.confirmation


async def test_an_approval_whose_end_could_not_be_recorded_is_not_taken_for_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        world.under([OTHER])

        async def fails(*_drafts: Any, **_more: Any) -> None:
            raise JournalError("the disk is full", code=Code.JOURNAL_FULL)

        with monkeypatch.context() as full:
            full.setattr(world.journal, "commit", fails)
            with pytest.raises(JournalError, match="full"):
                await world.again(pending, "note.write", HELLO)
        again = await world.again(pending, "note.write", HELLO)
        assert (again.status, again.code) == ("pending", Code.CONFIRMATION_REQUIRED)


async def test_a_question_that_is_still_open_stays_the_same_question() -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        again = await world.again(pending, "note.write", HELLO)
        assert (again.code, again.confirmation) == (Code.CONFIRMATION_REQUIRED, pending.confirmation)
        assert len(await world.confirmations.pending()) == 1


async def test_a_refusal_carries_who_and_why(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.deny(pending, by="bob", reason="not\ntoday")
        outcome = await world.again(pending, "note.write", HELLO)
        assert (outcome.status, outcome.code) == ("blocked", Code.CONFIRMATION_DENIED)
        assert outcome.reason == "bob refused note.write: not today"
        refused = await world.last(GateRefused)
        assert (refused.stage, refused.confirmation, refused.rule_id) == ("confirm", pending.confirmation, "default:L1")
        assert not ran


async def test_what_a_person_refused_does_not_run_when_policy_allows_it_later(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.deny(pending)
        world.under([ALLOW])
        assert (await world.again(pending, "note.write", HELLO)).code is Code.CONFIRMATION_DENIED
        assert not ran


async def test_silence_never_approves(ran: list[object]) -> None:
    async with opened(write, confirm_expires_s=60) as world:
        pending = await world.call("note.write", HELLO)
        world.clock.advance(59)
        assert (await world.again(pending, "note.write", HELLO)).code is Code.CONFIRMATION_REQUIRED
        world.clock.advance(1)
        outcome = await world.again(pending, "note.write", HELLO)
        assert (outcome.status, outcome.code) == ("blocked", Code.CONFIRMATION_EXPIRED)
        assert (await world.question(pending)).state == "expired"
        world.under([ALLOW])
        assert (await world.again(pending, "note.write", HELLO)).code is Code.CONFIRMATION_EXPIRED
        assert not ran


async def test_an_approval_that_is_not_used_in_time_is_asked_for_again(ran: list[object]) -> None:
    async with opened(write, confirm_expires_s=60) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        world.clock.advance(60)
        again = await world.again(pending, "note.write", HELLO)
        assert (again.status, again.confirmation == pending.confirmation) == ("pending", False)
        assert (await world.question(pending)).state == "replaced"
        assert not ran
        await world.approve(again)
        world.clock.advance(59)
        assert (await world.again(again, "note.write", HELLO)).ok


async def test_a_rule_sets_how_long_a_question_stays_open_and_who_may_answer() -> None:
    rule = {**ASK_TWO, "expires": "10m", "approvers": ["bob", "carol"]}
    async with opened(write, rules=[rule]) as world:
        request = (await world.question(await world.call("note.write", HELLO))).request
        assert (request.approvals, request.approvers, request.rule_id) == (2, ("bob", "carol"), "two")
        assert request.expires_at == world.clock.now() + 600 * SECOND


async def test_changed_policy_asks_again_and_replaces_the_question(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.approve(pending)
        world.under([OTHER])
        again = await world.again(pending, "note.write", HELLO)
        assert (again.status, again.confirmation == pending.confirmation) == ("pending", False)
        before = await world.question(pending)
        assert (before.state, before.replaced_by) == ("replaced", again.confirmation)
        assert [found.id for found in await world.confirmations.pending()] == [again.confirmation]
        assert not ran
        await world.approve(again)
        assert (await world.again(pending, "note.write", HELLO)).ok


async def test_an_edit_survives_being_asked_again(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        edited = await world.confirmations.edit(await world.question(pending), {"text": "bye"}, "bob")
        await decide(world.confirmations, edited, "approve", "bob")
        world.under([OTHER])
        again = await world.again(pending, "note.write", HELLO)
        assert (await world.question(again)).args == {"text": "bye"}
        await world.approve(again)
        for named in (pending, again):
            await world.again(named, "note.write", HELLO)
        assert ran == [("bye", 1)]


@pytest.mark.parametrize("meanwhile", [OTHER, ALLOW], ids=["asked again", "allowed for a moment"])
async def test_an_edit_survives_a_crash_between_the_end_of_its_question_and_the_next(
    meanwhile: dict[str, Any], ran: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        edited = await world.confirmations.edit(await world.question(pending), {"text": "bye"}, "bob")
        await decide(world.confirmations, edited, "approve", "bob")
        withdraw = world.confirmations.withdraw

        async def dies_after_it(found: Any, reason: str, *, replaced_by: str = "") -> bool:
            assert await withdraw(found, reason, replaced_by=replaced_by)
            raise asyncio.CancelledError

        world.under([meanwhile])
        with monkeypatch.context() as crash:
            crash.setattr(world.confirmations, "withdraw", dies_after_it)
            with pytest.raises(asyncio.CancelledError):
                await world.again(pending, "note.write", HELLO)
        world.under([OTHER])
        again = await world.again(pending, "note.write", HELLO)
        assert (await world.question(again)).args == {"text": "bye"}
        await world.approve(again)
        assert (await world.again(again, "note.write", HELLO)).ok
        assert ran == [("bye", 1)]


async def test_more_approvers_than_were_asked_for_ask_again(ran: list[object]) -> None:
    rule = {**ASK_TWO, "when": {"text": {"glob": "big*"}}}
    async with opened(write, rules=[rule]) as world:
        pending = await world.call("note.write", HELLO)
        edited = await world.confirmations.edit(await world.question(pending), {"text": "big thing"}, "bob")
        await decide(world.confirmations, edited, "approve", "bob")
        again = await world.again(pending, "note.write", HELLO)
        request = (await world.question(again)).request
        assert (again.status, request.approvals, request.rule_id) == ("pending", 2, "two")
        assert not ran
        await world.approve(again, "bob")
        await world.approve(again, "carol")
        assert (await world.again(pending, "note.write", HELLO)).ok


async def test_a_call_that_policy_allows_now_runs_without_the_question(ran: list[object]) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        world.under([ALLOW])
        assert (await world.again(pending, "note.write", HELLO)).ok
        assert (await world.question(pending)).state == "withdrawn"
        started = await world.last(ToolInvocationStarted)
        assert (started.confirmation, started.rule_id) == ("", "writes-run")
        assert len(ran) == 1


async def test_a_withdrawn_question_counts_for_nothing() -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        await world.confirmations.withdraw(await world.question(pending), "not needed")
        again = await world.again(pending, "note.write", HELLO)
        assert (again.status, again.confirmation == pending.confirmation) == ("pending", False)


async def test_a_refusal_that_comes_while_the_question_is_withdrawn_counts(
    ran: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(write) as world:
        pending = await world.call("note.write", HELLO)
        world.under([ALLOW])
        withdraw = world.confirmations.withdraw

        async def overtaken(found: Any, reason: str, *, replaced_by: str = "") -> bool:
            if (await world.question(pending)).state == "pending":
                await world.deny(pending)
            return await withdraw(found, reason, replaced_by=replaced_by)

        monkeypatch.setattr(world.confirmations, "withdraw", overtaken)
        assert (await world.again(pending, "note.write", HELLO)).code is Code.CONFIRMATION_DENIED
        assert not ran


@pytest.mark.parametrize("how", ["expire", "withdraw"])
async def test_an_edit_that_comes_while_the_question_is_ended_counts(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(write, confirm_expires_s=60) as world:
        pending = await world.call("note.write", HELLO)
        end = getattr(world.confirmations, how)

        async def overtaken(found: Any, *reason: str, **more: str) -> bool:
            monkeypatch.undo()
            world.clock._elapsed -= 30 * SECOND
            await world.confirmations.edit(await world.question(pending), {"text": "bye"}, "bob")
            ended: bool = await end(found, *reason, **more)
            return ended

        monkeypatch.setattr(world.confirmations, how, overtaken)
        world.clock.advance(60 if how == "expire" else 30)
        world.under([OTHER] if how == "withdraw" else [])
        again = await world.again(pending, "note.write", HELLO)
        (edited,) = await world.confirmations.pending()
        assert (again.status, again.confirmation, edited.args) == ("pending", edited.id, {"text": "bye"})


async def test_an_approval_that_comes_as_the_time_runs_out_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(write, confirm_expires_s=60) as world:
        pending = await world.call("note.write", HELLO)
        expire = world.confirmations.expire
        world.clock.advance(60)

        async def overtaken(found: Any) -> bool:
            world.clock._elapsed -= 30 * SECOND
            await world.approve(pending)
            return await expire(found)

        monkeypatch.setattr(world.confirmations, "expire", overtaken)
        assert (await world.again(pending, "note.write", HELLO)).ok


async def test_a_retry_of_an_approved_call_needs_no_new_approval() -> None:
    tries: list[int] = []

    @tool("note.flaky", level="L1", idempotent=True)
    async def flaky() -> str:
        """Fails at first."""
        tries.append(len(tries))
        if len(tries) == 1:
            raise ConnectionError("gone")
        return "done"

    async with opened(flaky) as world:
        pending = await world.call("note.flaky", tries_again=True)
        await world.approve(pending)
        assert (await world.again(pending, "note.flaky", tries_again=True)).code is Code.TOOL_UNAVAILABLE
        assert (await world.again(pending, "note.flaky", attempt=2)).value == "done"
        assert (await world.last(ToolInvocationStarted)).confirmation == pending.confirmation


async def test_a_retry_whose_policy_changed_asks_again() -> None:
    async with opened(put) as world:
        pending = await world.call("note.set", {"text": "x"})
        await world.approve(pending)
        await world.again(pending, "note.set", {"text": "x"})
        world.under([OTHER])
        again = await world.again(pending, "note.set", {"text": "x"}, attempt=2)
        assert (again.status, again.confirmation == pending.confirmation) == ("pending", False)
        assert (await world.question(pending)).state == "used"


@pytest.mark.parametrize("level", [Level.L0, Level.L1])
async def test_an_approval_that_policy_would_not_need_any_more_is_spent_all_the_same(level: Level) -> None:
    async with opened(odd(lambda _a, _c: ToolResult(1), level, requires_confirm=True)) as world:
        pending = await world.call()
        await world.approve(pending)
        outcome = await world.again(pending, "odd.tool")
        assert outcome.ok
        assert (await world.question(pending)).state == "used"
        assert world.store.commit_of("confirmation_used").synced
