"""Calls from outside jobs: who makes them, once under a key, and in any process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from remit import Remit, ToolResult
from remit.codes import Code
from remit.errors import JournalError, NotFoundError, UsageError
from remit.journal.event import HeadQuery
from remit.testing.journal.storage import note
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext
from tests.opened import OpenRemit

MAY = {"policy.rules": [{"effect": "allow", "tools": ["desk.*"]}]}
MUST_ASK = {"policy.rules": [{"effect": "ask", "tools": ["desk.*"]}]}
Act = Callable[[str, CallContext], Awaitable[None]]


async def at_once(_text: str, _ctx: CallContext) -> None:
    """Do nothing more."""


class Desk:
    """A provider whose only tool writes: into memory, which outlives the process that calls."""

    provider_id = "desk"

    def __init__(self, *, idempotent: bool = False, act: Act = at_once, requires: tuple[str, ...] = ()) -> None:
        self.written: list[str] = []
        self.keys: set[str] = set()
        self.act = act
        self._meta = ToolMeta(
            name="desk.write",
            provider_id="desk",
            description="Write.",
            input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            capability_level=Level.L1,
            risk_level=Risk.WRITE,
            side_effects=True,
            idempotent=idempotent,
            requires=requires,
        )

    async def list_tools(self) -> list[ToolMeta]:
        return [self._meta]

    async def invoke(self, _name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        if not self._meta.idempotent or ctx.idempotency_key not in self.keys:
            self.keys.add(ctx.idempotency_key)
            self.written.append(args["text"])
        await self.act(args["text"], ctx)
        return ToolResult({"notes": len(self.written)})

    async def close(self) -> None:
        """Nothing is held."""


class Remembering(Desk):
    """One that can say what came of a call."""

    async def reconcile(self, _name: str, _args: dict[str, Any], ctx: CallContext) -> ToolResult | None:
        return ToolResult({"notes": len(self.written)}) if ctx.idempotency_key in self.keys else None


async def cut_off(remit_in: OpenRemit, desk: Desk, **given: Any) -> None:
    """Make a call whose process goes away after the effect and before its outcome is recorded."""
    began = asyncio.Event()

    async def hang(_text: str, _ctx: CallContext) -> None:
        began.set()
        await asyncio.Event().wait()

    desk.act = hang
    async with remit_in(providers=[desk], flags=MAY) as remit:
        call = asyncio.create_task(remit.call("desk.write", {"text": "x"}, **given))
        await began.wait()
        call.cancel()
        await asyncio.wait([call])
    desk.act = at_once


async def calls(remit: Remit) -> list[str]:
    """The states of calls that have streams of their own, the oldest first."""
    return [head.state for head in reversed(await remit.runtime.journal.heads(HeadQuery(kind="call")))]


# --- who calls


async def test_a_session_says_who_calls_through_which_face(remit_in: OpenRemit) -> None:
    async with remit_in(providers=[Desk()], flags=MAY) as remit:
        assert (await remit.call("desk.write", {"text": "x"})).ok
        assert (await remit.call("desk.write", {"text": "y"})).ok
        (row,) = await remit.service.sessions.rows()
        told = await remit.service.streams.narrative(row.session)
        assert (row.principal, row.title) == ("alice", "a python client as alice")
        assert (told.kind, told.principal, [step.state for step in told.steps]) == ("session", "alice", ["ok", "ok"])


async def test_a_session_is_only_its_principals(remit_in: OpenRemit) -> None:
    async with remit_in(providers=[Desk()], flags=MAY) as remit:
        sessions = remit.service.sessions
        session = await sessions.open("http", principal="ann")
        assert (await sessions.call(session, "desk.write", {"text": "x"}, principal="ann")).ok
        for principal, named in (("ben", session), ("ann", "ses_" + "0" * 26), ("ann", "")):
            with pytest.raises(NotFoundError) as raised:
                await sessions.call(named, "desk.write", {"text": "x"}, principal=principal)
            assert raised.value.code is Code.SESSION_NOT_FOUND


async def test_two_processes_call_in_one_session_side_by_side(remit_in: OpenRemit) -> None:
    desk = Desk()
    async with remit_in(providers=[desk], flags=MAY) as one, remit_in(providers=[desk], flags=MAY) as other:
        session = await one.service.sessions.open("http")
        for round_ in range(3):
            outcomes = await asyncio.gather(
                *(r.service.sessions.call(session, "desk.write", {"text": f"{round_}"}) for r in (one, other))
            )
            assert [outcome.status for outcome in outcomes] == ["ok", "ok"]
        (row,) = await one.service.sessions.rows()
        told = await one.service.streams.narrative(session)
        assert (row.session, len(told.steps)) == (session, 6)
        report = await one.service.streams.verify(session)
        assert (report.ok, report.streams) == (True, 2)


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded before", "nothing recorded"])
async def test_a_session_goes_on_once_the_storage_is_mended(remit_in: OpenRemit, recorded: bool) -> None:
    async with remit_in() as remit:
        sessions, journal = remit.service.sessions, remit.runtime.journal
        session = await sessions.open("python")
        found = sessions._open[session]
        if not recorded:
            found._stream += "x"
            found._writer = journal.writer(found._stream, "session")
        failed = await found.writer()
        failed.fail(JournalError("full", code=Code.JOURNAL_FULL))
        one, other = await asyncio.gather(found.writer(), found.writer())
        assert one is other is await found.writer()
        await journal.append(one, note(1), synced=True)
        stream = found._stream
        assert [event.kind for event in await journal.read(stream)] == ["session_opened", note(1).KIND]
        assert (await journal.verify(stream)) == 2


async def test_an_outcome_names_its_code_in_json(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        sessions = remit.service.sessions
        outcome = await sessions.call(await sessions.open("http"), "desk.none")
        plain = msgspec.json.decode(msgspec.json.encode(outcome))
        assert (plain["status"], plain["code"], plain["retryable"]) == ("blocked", "UNKNOWN_TOOL", False)


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


async def test_a_sessions_story_has_its_calls_that_asked_in_their_order(remit_in: OpenRemit) -> None:
    rules = {"policy.rules": [{"effect": "ask", "tools": ["desk.*"]}]}
    async with remit_in(providers=[Desk()], flags=rules) as remit:
        await remit.call("desk.none")
        first = await remit.call("desk.write", {"text": "x"})
        await remit.service.confirmations.decide(str(first.confirmation), "approve", by="bob")
        await remit.call("desk.write", {"text": "x"})
        await remit.call("desk.nothing")
        (row,) = await remit.service.sessions.rows()
        told = await remit.service.streams.narrative(row.session)
        assert [(step.name, step.state) for step in told.steps] == [
            ("tool.desk.none", "blocked"),
            ("tool.desk.write", "ok"),
            ("tool.desk.nothing", "blocked"),
        ]
        assert told.steps[1].confirmations[0].decisions[0].by == "bob"
        assert (await remit.service.streams.verify(row.session)).streams == 3


@pytest.mark.parametrize("key", ["", "k"])
async def test_an_approval_remembered_for_a_session_covers_its_other_calls_and_no_other_session(
    remit_in: OpenRemit, key: str
) -> None:
    async with remit_in(providers=[Desk()], flags=MUST_ASK) as remit:
        first = await remit.call("desk.write", {"text": "x"}, key=key)
        decided = await remit.service.confirmations.decide(str(first.confirmation), "approve", by="bob")
        await remit.service.approvals.remember(decided.confirmation, "session", seconds=60, exact=False)
        for other in ("", "other"):
            assert (await remit.call("desk.write", {"text": "y"}, key=other)).ok
        session = await remit.service.sessions.open("python")
        assert (await remit.service.sessions.call(session, "desk.write", {"text": "y"})).status == "pending"
