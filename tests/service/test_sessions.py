"""Calls from outside jobs: who makes them, through which face, in which process."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from remit import tool
from remit.codes import Code
from remit.errors import JournalError, NotFoundError, StateError, VersionError
from remit.jobs.replay import ReplayStop
from remit.journal.event import HeadQuery
from remit.record.heads import CALL
from remit_testing.journal.storage import note
from tests.opened import OpenRemit
from tests.service.desk import MAY, Desk

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


@tool("desk.rate", level="L0", version="1")
async def rate(city: str) -> int:
    """Return a rate."""
    return len(city)


@tool("desk.rate", level="L0", version="2")
async def rate_of(city: str, day: int) -> int:
    """Return the rate of a day."""
    return len(city) + day


@tool("desk.close")
async def close() -> str:
    """Close the desk."""
    return "closed"


ALLOWED = {"policy.rules": [{"effect": "allow", "tools": ["desk.*"]}]}


async def recorded_session(remit_in: OpenRemit) -> str:
    """A session of an MCP client that made two calls."""
    async with remit_in(tools=[rate, close], flags=ALLOWED) as remit:
        session: str = await remit.service.sessions.open("mcp", client="editor")
        for name, args in (("desk.rate", {"city": "Graz"}), ("desk.close", {})):
            assert (await remit.service.sessions.call(session, name, args)).status == "ok"
        report = await remit.service.jobs.replay(session)
        assert (report.verdict, report.steps, report.today, report.drifts) == ("same", 2, "same", ())
    return session


@pytest.mark.parametrize(
    ("tools", "flags", "today", "changes"),
    [
        ([rate, close], {"policy.rules": [{"effect": "deny", "tools": ["desk.close"]}]}, "refused", {"POLICY_DENIED"}),
        ([rate, close], {"policy.rules": []}, "asks", {"CONFIRMATION_REQUIRED"}),
        ([rate_of, close], ALLOWED, "refused", {"INVALID_TOOL_ARGS"}),
        ([close], ALLOWED, "refused", {"UNKNOWN_TOOL"}),
    ],
)
async def test_a_session_is_replayed_by_judging_its_calls_as_of_today(
    remit_in: OpenRemit, tools: list[Any], flags: dict[str, Any], today: str, changes: set[str]
) -> None:
    session = await recorded_session(remit_in)
    async with remit_in(tools=tools, flags=flags) as remit:
        report = await remit.service.jobs.replay(session)
        assert (report.today, {call.code for call in report.calls}) == (today, changes)
        assert {one.about for one in report.drifts} >= ({"request"} if tools[0] is not rate else set())


async def test_calls_that_were_refused_are_judged_again_too(remit_in: OpenRemit) -> None:
    flags = {"policy.rules": [{"effect": "deny", "tools": ["desk.close"]}, *ALLOWED["policy.rules"]]}
    async with remit_in(tools=[rate, close], flags=flags) as remit:
        session: str = await remit.service.sessions.open("mcp", client="editor")
        for name, args in (("desk.close", {}), ("desk.rate", {"day": 1}), ("desk.none", {}), ("desk.rate", {})):
            assert (await remit.service.sessions.call(session, name, args)).status == "blocked"
        assert (await remit.service.jobs.replay(session)).today == "same"
    async with remit_in(tools=[rate, close], flags=ALLOWED) as remit:
        report = await remit.service.jobs.replay(session)
        assert [(call.tool, call.change) for call in report.calls] == [("desk.close", "runs")]
    async with remit_in(tools=[rate, close], flags={"policy.rules": []}) as remit:
        report = await remit.service.jobs.replay(session)
        assert [(call.tool, call.change) for call in report.calls] == [("desk.close", "asks")]


async def test_one_call_of_a_session_is_replayed_by_its_id(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[rate, close], flags=ALLOWED) as remit:
        session = await remit.service.sessions.open("mcp", client="editor")
        await remit.service.sessions.call(session, "desk.rate", {"city": "Graz"})
        await remit.service.sessions.call(session, "desk.close", {}, key="once")
        (call,) = await remit.runtime.journal.heads(HeadQuery(kind=CALL))
        identifier = call.stream.partition("/")[2]
        assert identifier.startswith("call_")
        report = await remit.service.jobs.replay(identifier)
        assert (report.verdict, report.steps, report.today) == ("same", 1, "same")
    deny = {"policy.rules": [{"effect": "deny", "tools": ["desk.close"], "callers": ["mcp:*"]}]}
    async with remit_in(tools=[rate, close], flags=deny) as remit:
        assert (await remit.service.jobs.replay(identifier)).today == "refused"


async def test_a_session_is_refused_under_other_versions_unless_anyway(remit_in: OpenRemit) -> None:
    session = await recorded_session(remit_in)
    async with remit_in(tools=[rate_of, close], flags={**ALLOWED, "jobs.mismatch": "fail"}) as remit:
        with pytest.raises(VersionError) as raised:
            await remit.service.jobs.replay(session)
        assert raised.value.code is Code.TOOL_SCHEMA_DRIFT
        assert (await remit.service.jobs.replay(session, anyway=True)).today == "refused"


async def test_a_session_has_no_recipe_to_stop_in(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        await remit.call("fs.list", {"path": "."})
        (session,) = await remit.service.sessions.rows()
        with pytest.raises(StateError) as raised:
            await remit.service.jobs.replay(session.session, stop=ReplayStop("1", print))
        assert raised.value.code is Code.JOB_NOT_REPLAYABLE
        assert f"remit trace {session.session}" in raised.value.remedy
