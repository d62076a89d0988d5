"""Calls from outside jobs: once under a key, and gone on with in any process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import JournalError, UsageError
from remit.tools.provider import CallContext
from tests.opened import OpenRemit
from tests.service.desk import MAY, MUST_ASK, Desk, Remembering, calls, cut_off

# --- calls under a key


async def test_a_call_under_a_key_is_made_once_in_whichever_process(remit_in: OpenRemit) -> None:
    desk = Desk()
    async with remit_in(providers=[desk], flags=MAY) as remit:
        first = await remit.call("desk.write", {"text": "x"}, key="k1")
        assert await remit.call("desk.write", {"text": "x"}, key="k1") == first
        assert (await remit.call("desk.write", {"text": "x"}, key="k2")).value == {"notes": 2}
    async with remit_in(providers=[desk], flags=MAY) as remit:
        again = await remit.call("desk.write", {"text": "x"}, key="k1")
        assert (again.value, again.invocation_id) == ({"notes": 1}, first.invocation_id)
        assert await calls(remit) == ["done", "done"]
    assert desk.written == ["x", "x"]


async def test_a_key_is_its_principals_own(remit_in: OpenRemit) -> None:
    desk = Desk()
    for name in ("ann", "ben"):
        async with remit_in(providers=[desk], flags={**MAY, "app.principal": name}) as remit:
            assert (await remit.call("desk.write", {"text": name}, key="k")).ok
    assert desk.written == ["ann", "ben"]


@pytest.mark.parametrize("other", [("desk.write", {"text": "y"}), ("desk.erase", {"text": "x"})])
async def test_another_call_under_a_used_key_is_refused(remit_in: OpenRemit, other: tuple[str, dict[str, Any]]) -> None:
    desk = Desk()
    async with remit_in(providers=[desk], flags=MAY) as remit:
        assert (await remit.call("desk.write", {"text": "x"}, key="k")).ok
        refused = await remit.call(*other, key="k")
        assert (refused.status, refused.code) == ("blocked", Code.IDEMPOTENCY_MISMATCH)
        (row,) = await remit.service.sessions.rows()
        told = await remit.service.streams.narrative(row.session)
        assert [(step.state, step.code) for step in told.steps] == [("ok", ""), ("blocked", "IDEMPOTENCY_MISMATCH")]
    assert desk.written == ["x"]


async def test_calls_under_one_key_at_once_are_one(remit_in: OpenRemit) -> None:
    began, gate = asyncio.Event(), asyncio.Event()

    async def wait(_text: str, _ctx: CallContext) -> None:
        began.set()
        await gate.wait()

    desk = Desk(act=wait)
    async with remit_in(providers=[desk], flags=MAY) as one, remit_in(providers=[desk], flags=MAY) as other:
        made = [asyncio.create_task(r.call("desk.write", {"text": "x"}, key="k")) for r in (one, other, one, other)]
        await began.wait()
        gate.set()
        outcomes = [await call for call in made]
    assert {outcome.invocation_id for outcome in outcomes} == {outcomes[0].invocation_id}
    assert [outcome.value for outcome in outcomes] == [{"notes": 1}] * 4
    assert desk.written == ["x"]


async def test_a_call_under_a_key_that_nobody_saw_the_end_of_is_never_repeated(remit_in: OpenRemit) -> None:
    desk = Desk()
    await cut_off(remit_in, desk, key="k")
    for _ in range(2):
        async with remit_in(providers=[desk], flags=MAY) as remit:
            for _ in range(2):
                outcome = await remit.call("desk.write", {"text": "x"}, key="k")
                assert (outcome.status, outcome.code, outcome.uncertain) == ("failed", Code.OUTCOME_UNKNOWN, True)
            assert await calls(remit) == ["uncertain"]
    assert desk.written == ["x"]


async def test_a_call_under_a_key_that_may_be_repeated_is_under_the_same_idempotency_key(remit_in: OpenRemit) -> None:
    desk = Desk(idempotent=True)
    await cut_off(remit_in, desk, key="k")
    async with remit_in(providers=[desk], flags=MAY) as remit:
        assert (await remit.call("desk.write", {"text": "x"}, key="k")).value == {"notes": 1}
        assert (await remit.service.streams.verify()).ok
    assert (desk.written, len(desk.keys)) == (["x"], 1)


async def test_a_provider_that_can_tell_gives_the_outcome_of_a_call_under_a_key(remit_in: OpenRemit) -> None:
    desk = Remembering()
    await cut_off(remit_in, desk, key="k")
    async with remit_in(providers=[desk], flags=MAY) as remit:
        assert (await remit.call("desk.write", {"text": "x"}, key="k")).value == {"notes": 1}
        assert await calls(remit) == ["done"]
    assert desk.written == ["x"]


async def test_a_provider_that_knows_that_nothing_happened_lets_the_call_be_made(remit_in: OpenRemit) -> None:
    desk = Remembering()
    await cut_off(remit_in, desk, key="k")
    desk.keys.clear()
    desk.written.clear()
    async with remit_in(providers=[desk], flags=MAY) as remit:
        assert (await remit.call("desk.write", {"text": "x"}, key="k")).value == {"notes": 1}
    assert desk.written == ["x"]


async def test_a_key_that_was_taken_before_anything_was_announced_is_gone_on_with(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk()
    async with remit_in(providers=[desk], flags=MAY) as remit:
        journal = remit.runtime.journal

        async def fails(*_given: Any) -> None:
            raise JournalError("gone", code=Code.JOURNAL_FULL)

        monkeypatch.setattr(journal, "acquire", fails)
        with pytest.raises(JournalError):
            await remit.call("desk.write", {"text": "x"}, key="k")
        assert (desk.written, await calls(remit)) == ([], ["running"])
    async with remit_in(providers=[desk], flags=MAY) as remit:
        assert (await remit.call("desk.write", {"text": "x"}, key="k")).ok
    assert desk.written == ["x"]


async def test_a_refusal_for_now_does_not_use_up_a_key(remit_in: OpenRemit) -> None:
    desk = Desk(requires=("mcp",))
    async with remit_in(providers=[desk], flags={**MAY, "tools.no_mcp": True}) as remit:
        refused = await remit.call("desk.write", {"text": "x"}, key="k")
        assert (refused.status, refused.code) == ("blocked", Code.MCP_REQUIRED_UNAVAILABLE)
    ready = Desk()
    async with remit_in(providers=[ready], flags=MAY) as remit:
        assert (await remit.call("desk.write", {"text": "x"}, key="k")).ok
        assert (await remit.call("desk.write", {"text": "x"}, key="k")).value == {"notes": 1}
    assert (desk.written, ready.written) == ([], ["x"])


@pytest.mark.parametrize("key", ["k" * 256, "a\nb"])
async def test_a_key_that_cannot_be_used_is_refused(remit_in: OpenRemit, key: str) -> None:
    async with remit_in() as remit:
        with pytest.raises(UsageError, match="idempotency key"):
            await remit.call("desk.write", {"text": "x"}, key=key)


async def test_arguments_that_json_cannot_hold_are_refused_with_and_without_a_key(remit_in: OpenRemit) -> None:
    async with remit_in(providers=[Desk()], flags=MAY) as remit:
        for key in ("", "k"):
            outcome = await remit.call("desk.write", {"text": {1, 2}}, key=key)
            assert (outcome.status, outcome.code) == ("blocked", Code.INVALID_TOOL_ARGS)
        assert await calls(remit) == []


# --- calls that ask


async def test_every_call_of_a_session_tells_the_tool_the_same_conversation(remit_in: OpenRemit) -> None:
    told: list[str] = []

    async def note(_text: str, ctx: CallContext) -> None:
        told.append(ctx.conversation)

    rules = [{"effect": "ask", "tools": ["desk.*"], "when": {"text": {"equals": "asks"}}}, *MAY["policy.rules"]]
    async with remit_in(providers=[Desk(act=note)], flags={"policy.rules": rules}) as remit:
        sessions = remit.service.sessions
        session = await sessions.open("python")
        await sessions.call(session, "desk.write", {"text": "x"})
        await sessions.call(session, "desk.write", {"text": "x"}, key="k")
        asked = await sessions.call(session, "desk.write", {"text": "asks"})
        assert asked.confirmation
        await remit.service.confirmations.decide(asked.confirmation, "approve", by="bob")
        assert (await sessions.call(session, "desk.write", {"text": "asks"})).ok
    assert told == [f"session/{session}"] * 3


@pytest.mark.parametrize("key", ["", "k"])
async def test_a_call_made_again_in_another_process_meets_its_approval(remit_in: OpenRemit, key: str) -> None:
    desk = Desk()
    async with remit_in(providers=[desk], flags=MUST_ASK) as remit:
        first = await remit.call("desk.write", {"text": "x"}, key=key)
        assert first.code is Code.CONFIRMATION_REQUIRED
        assert first.confirmation is not None
    async with remit_in(providers=[desk], flags=MUST_ASK) as remit:
        assert (await remit.call("desk.write", {"text": "x"}, key=key)).confirmation == first.confirmation
        await remit.service.confirmations.decide(first.confirmation, "approve", by="bob")
    async with remit_in(providers=[desk], flags=MUST_ASK) as remit:
        assert (await remit.call("desk.write", {"text": "x"}, key=key)).value == {"notes": 1}
        again = await remit.call("desk.write", {"text": "x"}, key=key)
        assert again.status == ("ok" if key else "pending")  # without a key it is another call
    assert desk.written == ["x"]


async def test_a_refused_call_says_so_in_another_process_too(remit_in: OpenRemit) -> None:
    async with remit_in(providers=[Desk()], flags=MUST_ASK) as remit:
        first = await remit.call("desk.write", {"text": "x"})
    async with remit_in(providers=[Desk()], flags=MUST_ASK) as remit:
        await remit.service.confirmations.decide(str(first.confirmation), "deny", by="bob", reason="not today")
        outcome = await remit.call("desk.write", {"text": "x"})
        assert (outcome.code, outcome.confirmation) == (Code.CONFIRMATION_DENIED, first.confirmation)
        assert "not today" in outcome.reason
        assert (await remit.call("desk.write", {"text": "x"})).status == "pending"


@pytest.mark.parametrize("other", [{"flags": {"app.principal": "ben"}}, {"args": {"text": "y"}}])
async def test_an_approval_serves_nobody_elses_call_and_no_other_one(remit_in: OpenRemit, other: Any) -> None:
    desk = Desk()
    async with remit_in(providers=[desk], flags=MUST_ASK) as remit:
        first = await remit.call("desk.write", {"text": "x"})
        await remit.service.confirmations.decide(str(first.confirmation), "approve", by="bob")
    async with remit_in(providers=[desk], flags={**MUST_ASK, **other.get("flags", {})}) as remit:
        outcome = await remit.call("desk.write", other.get("args", {"text": "x"}))
        assert outcome.status == "pending"
        assert outcome.confirmation != first.confirmation
    assert desk.written == []


async def test_two_processes_use_an_approval_once(remit_in: OpenRemit) -> None:
    desk = Desk()
    async with (
        remit_in(providers=[desk], flags=MUST_ASK) as one,
        remit_in(providers=[desk], flags=MUST_ASK) as other,
    ):
        first = await one.call("desk.write", {"text": "x"})
        await one.service.confirmations.decide(str(first.confirmation), "approve", by="bob")
        outcomes = await asyncio.gather(*(r.call("desk.write", {"text": "x"}) for r in (one, other)))
        assert sorted(outcome.status for outcome in outcomes) == ["ok", "pending"]
    assert desk.written == ["x"]


async def test_an_approved_call_that_was_cut_off_is_told_of_before_another_is_asked_about(remit_in: OpenRemit) -> None:
    desk, began = Desk(), asyncio.Event()

    async def hang(_text: str, _ctx: CallContext) -> None:
        began.set()
        await asyncio.Event().wait()

    async with remit_in(providers=[desk], flags=MUST_ASK) as remit:
        first = await remit.call("desk.write", {"text": "x"})
        await remit.service.confirmations.decide(str(first.confirmation), "approve", by="bob")
        desk.act = hang
        call = asyncio.create_task(remit.call("desk.write", {"text": "x"}))
        await began.wait()
        call.cancel()
        await asyncio.wait([call])
        unknown = await remit.call("desk.write", {"text": "x"})
        assert (unknown.code, unknown.uncertain) == (Code.OUTCOME_UNKNOWN, True)
        assert (await remit.call("desk.write", {"text": "x"})).status == "pending"
    assert desk.written == ["x"]


@pytest.mark.parametrize("key", ["", "k"])
async def test_an_approval_remembered_for_a_session_covers_its_other_calls_and_no_other_session(
    remit_in: OpenRemit, key: str
) -> None:
    async with remit_in(providers=[Desk()], flags=MUST_ASK) as remit:
        first = await remit.call("desk.write", {"text": "x"}, key=key)
        decided = await remit.service.confirmations.decide(str(first.confirmation), "approve", by="bob")
        await remit.service.approvals.remember(decided.confirmation, "session", seconds=60, exact=False, by="bob")
        for other in ("", "other"):
            assert (await remit.call("desk.write", {"text": "y"}, key=other)).ok
        session = await remit.service.sessions.open("python")
        assert (await remit.service.sessions.call(session, "desk.write", {"text": "y"})).status == "pending"


async def test_the_record_of_both_sessions_says_where_an_approved_call_ran(remit_in: OpenRemit) -> None:
    desk = Desk()
    async with remit_in(providers=[desk], flags=MUST_ASK) as remit:
        asked_in, again_in = [await remit.service.sessions.open("mcp", client=client) for client in ("one", "two")]
        asked = await remit.service.sessions.call(asked_in, "desk.write", {"text": "x"})
        again = await remit.service.sessions.call(again_in, "desk.write", {"text": "x"})
        assert again.confirmation == asked.confirmation
        empty = await remit.service.streams.narrative(again_in)
        assert empty.steps == ()  # it waits where it was asked
        await remit.service.confirmations.decide(asked.confirmation, "approve", by="ann")
        assert (await remit.service.sessions.call(again_in, "desk.write", {"text": "x"})).ok
        first = await remit.service.streams.narrative(asked_in)
        second = await remit.service.streams.narrative(again_in)
        assert (await remit.service.streams.verify()).ok
    (here,), (there,) = first.steps, second.steps
    assert (here.step, here.state, there.state) == (there.step, "ok", "ok")
    for step in (here, there):
        (continued,) = step.continued
        assert (continued.session, continued.asked_in) == (again_in, asked_in)
        assert step.started_at <= continued.at <= step.attempts[0].started_at
    assert there.started_at > here.started_at  # its own time
    assert there.confirmations[0].used_at is not None
    assert desk.written == ["x"]
