"""Authority is current when the call runs: what allowed it may end while it waits for room, or be taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from remit import tool
from remit.clock import DAY, SECOND
from remit.codes import Code
from remit.errors import NotFoundError, StateError, UsageError
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome
from remit.gateway.stages.resolve import Ready
from remit.gateway.stages.take_limits import Queue, TakeLimits
from remit.journal.kinds import ConfirmationDecided
from remit.policy.approval import Remembered
from remit.providers.functions.provider import FunctionProvider
from remit.threads import Threads
from tests.gateway.samples import ran, write
from tests.gateway.world import ALICE, World, opened

ASK = {"id": "ask", "effect": "ask", "tools": ["door.*"]}
HELLO = {"text": "hello"}


class Door:
    """A tool with one place, which a test takes and gives back."""

    def __init__(self) -> None:
        self.entered: list[int] = []

        @tool("door.enter", level="L1")
        def enter(number: int) -> int:
            self.entered.append(number)
            return number

        @tool("door.look", level="L0")
        async def look() -> dict[str, str]:
            return {"status": self.status}

        self.status = "open"
        self.threads = Threads(1)
        self.provider = FunctionProvider([enter, look], provider_id="doors", threads=self.threads)

    def world(self, *rules: Mapping[str, Any]) -> Any:
        return opened(self.provider, rules=rules)

    async def waits(self, world: World, confirmation: str | None = None) -> asyncio.Task[Outcome]:
        """A call that has passed policy and waits for the place."""
        await world.catalog.tools()
        await self.threads.slots.acquire()
        call = asyncio.ensure_future(world.call("door.enter", {"number": 1}, confirmation=confirmation))
        while not (self.threads.slots._waiters or call.done()):  # noqa: ASYNC110 - a semaphore tells of no one who waits
            await asyncio.sleep(0)  # noqa: TID251 - lets it come as far as the place, and waits for no time
        return call

    async def ends(self, call: asyncio.Task[Outcome]) -> Outcome:
        self.threads.slots.release()
        return await call


async def remembered(world: World, question: str = "c_1", **changes: Any) -> Remembered:
    found, _ = await world.catalog.resolve(changes.get("tool", "door.enter"), {})
    said: dict[str, Any] = {
        "id": "new", "tool": "door.enter", "provider_id": "doors", "contract_hash": found.contract_hash,
        "args_digest": None, "scope": "everything", "stream": "", "principal": ALICE, "made_by": ("bob",),
        "made_at": world.clock.now(), "expires_at": world.clock.now() + 60 * SECOND,
    }  # fmt: skip
    return await world.remembered.keep(Remembered(**(said | changes)), question, "bob")


async def test_an_approval_that_expires_while_its_call_waits_is_asked_for_again() -> None:
    door = Door()
    async with door.world({**ASK, "expires": 60}) as world:
        asked = await world.call("door.enter", {"number": 1})
        await world.approve(asked)
        call = await door.waits(world, asked.confirmation)
        world.clock.advance(61)
        outcome = await door.ends(call)
        assert (outcome.code, door.entered) == (Code.CONFIRMATION_REQUIRED, [])
        assert outcome.confirmation != asked.confirmation


async def test_an_approval_that_is_taken_back_while_its_call_waits_is_asked_for_again() -> None:
    door = Door()
    async with door.world(ASK) as world:
        asked = await world.call("door.enter", {"number": 1})
        await world.approve(asked)
        call = await door.waits(world, asked.confirmation)
        await world.confirmations.revoke(await world.question(asked), "bob")
        outcome = await door.ends(call)
        assert (outcome.code, door.entered) == (Code.CONFIRMATION_REQUIRED, [])


async def test_an_approval_that_holds_is_used_after_the_wait() -> None:
    door = Door()
    async with door.world(ASK) as world:
        asked = await world.call("door.enter", {"number": 1})
        await world.approve(asked)
        call = await door.waits(world, asked.confirmation)
        world.clock.advance(61)
        assert (await door.ends(call)).ok
        assert (await world.question(asked)).state == "used"
        assert not door.threads.slots.locked()


@pytest.mark.parametrize("end", ["revoke", "expire"])
async def test_a_remembered_approval_that_ends_while_a_call_waits_allows_it_no_more(end: str) -> None:
    door = Door()
    async with door.world(ASK) as world:
        rule = await remembered(world)
        call = await door.waits(world)
        if end == "revoke":
            await world.remembered.revoke(rule.id, "bob")
        else:
            world.clock.advance(60)
        assert ((await door.ends(call)).code, door.entered) == (Code.CONFIRMATION_REQUIRED, [])


async def test_a_fact_that_changes_while_a_call_waits_counts() -> None:
    door = Door()
    rule = {"id": "opened", "effect": "allow", "tools": ["door.*"], "where": 'seen("door.look").status == "open"'}
    async with door.world(rule) as world:
        await world.call("door.look", step="0")
        call = await door.waits(world)
        door.status = "closed"
        await world.call("door.look", step="9")
        assert ((await door.ends(call)).code, door.entered) == (Code.CONFIRMATION_REQUIRED, [])


async def test_what_ended_while_anything_else_was_waited_for_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [5, 100_000]

    def ready(_self: Ready, call: Call, proceed: Proceed) -> Any:
        if waits:
            world.clock.advance(waits.pop())
        return proceed(call)

    monkeypatch.setattr(Ready, "__call__", ready)
    async with opened(write) as world:
        asked = await world.call("note.write", HELLO)
        await world.approve(asked)
        waits.append(DAY // SECOND + 1)
        assert (await world.again(asked, "note.write", HELLO)).code is Code.CONFIRMATION_REQUIRED


@pytest.mark.parametrize("ends", ["approval", "remembered", "rule"])
async def test_what_ended_just_before_the_announcement_counts_too(monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    door, waits, take = Door(), list[float](), TakeLimits.__call__
    limited = {"effect": "allow", "tools": ["door.*"], "during": {"until": "1970-01-02T00:00:00Z"}}

    def taken(stage: TakeLimits, call: Call, proceed: Proceed) -> Any:
        if waits:
            world.clock.advance(waits.pop())
        return take(stage, call, proceed)

    monkeypatch.setattr(TakeLimits, "__call__", taken)
    async with door.world({**limited, "id": "limited"} if ends == "rule" else ASK) as world:
        question = None
        if ends == "approval":
            asked = await world.call("door.enter", {"number": 1})
            await world.approve(asked)
            question = asked.confirmation
        elif ends == "remembered":
            await remembered(world)
        else:
            world.clock._start += SECOND - world.clock.now()
        waits.append(2 * DAY / SECOND)
        outcome = await world.call("door.enter", {"number": 1}, confirmation=question)
        assert (outcome.code, door.entered) == (Code.CONFIRMATION_REQUIRED, [])


async def test_a_budget_counts_a_call_that_waited_once() -> None:
    door = Door()
    async with door.world({"id": "all", "effect": "allow", "tools": ["*"]}) as world:
        call = await door.waits(world)
        assert (await door.ends(call)).ok
        assert world.writer.announced == {"door.enter": 1}


# --- approvals that are taken back


async def test_an_approval_can_be_taken_back_until_it_is_used() -> None:
    async with opened(write) as world:
        asked = await world.call("note.write", HELLO)
        await world.approve(asked)
        revoked = await world.confirmations.revoke(await world.question(asked), "carol", "the wrong note")
        assert (revoked.state, revoked.last and (revoked.last.by, revoked.last.reason)) == (
            "withdrawn",
            ("carol", "the wrong note"),
        )
        anew = await world.again(asked, "note.write", HELLO)
        assert anew.code is Code.CONFIRMATION_REQUIRED
        await world.approve(anew)
        assert (await world.again(anew, "note.write", HELLO)).ok
        with pytest.raises(StateError) as refused:
            await world.confirmations.revoke(await world.question(anew), "bob")
        assert refused.value.code is Code.CONFIRMATION_CLOSED


async def test_only_who_may_decide_takes_an_approval_back() -> None:
    async with opened(write, rules=[{**ASK, "tools": ["note.*"], "approvers": ["bob", "carol"]}]) as world:
        asked = await world.call("note.write", HELLO)
        await world.approve(asked)
        with pytest.raises(UsageError) as refused:
            await world.confirmations.revoke(await world.question(asked), ALICE)
        assert refused.value.code is Code.DECIDER_NOT_ALLOWED
        assert (await world.confirmations.revoke(await world.question(asked), "carol")).state == "withdrawn"


async def test_an_approval_taken_back_just_before_the_announcement_lets_nothing_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def revoked(_queue: Queue, call: Call, proceed: Proceed) -> Outcome:
        await world.confirmations.revoke(await world.question(asked), "bob")
        return await proceed(call)

    monkeypatch.setattr(Queue, "__call__", revoked)
    async with opened(write) as world:
        asked = await world.call("note.write", HELLO)
        await world.approve(asked)
        outcome = await world.again(asked, "note.write", HELLO)
        assert (outcome.code, ran) == (Code.CONFIRMATION_REQUIRED, [])
        assert outcome.confirmation != asked.confirmation


async def test_ending_a_remembered_approval_ends_the_one_it_came_with() -> None:
    async with opened(write) as world:
        asked = await world.call("note.write", HELLO)
        question = await world.approve(asked)
        found, _ = await world.catalog.resolve("note.write", {})
        rule = await remembered(
            world, tool="note.write", provider_id="local", contract_hash=found.contract_hash, question=question.id
        )
        await world.remembered.revoke(rule.id, "bob")
        assert (await world.question(asked)).state == "withdrawn"
        assert (await world.again(asked, "note.write", HELLO)).code is Code.CONFIRMATION_REQUIRED


# --- clocks


@pytest.mark.parametrize(("back", "code"), [(200, None), (7_200, Code.CONFIRMATION_REQUIRED)])
async def test_nothing_is_used_before_it_was_given(back: float, code: Code | None) -> None:
    async with opened(write) as world:
        asked = await world.call("note.write", HELLO)
        await world.approve(asked)
        world.clock._start -= int(back * SECOND)
        assert (await world.again(asked, "note.write", HELLO)).code is code


async def test_no_remembered_approval_holds_before_it_was_made() -> None:
    door = Door()
    async with door.world(ASK) as world:
        await remembered(world)
        world.clock._start -= 7_200 * SECOND
        assert (await world.call("door.enter", {"number": 1})).code is Code.CONFIRMATION_REQUIRED


async def test_an_id_of_two_questions_finds_neither() -> None:
    async with opened(write) as world:
        asked = await world.call("note.write", HELLO)
        question = await world.question(asked)
        draft, blobs = world.confirmations.open("session/other", question.request, HELLO, "forged")
        await world.journal.commit(draft, synced=True, blobs=blobs)
        with pytest.raises(NotFoundError, match="fits several"):
            await world.question(asked)
        assert ConfirmationDecided.KIND not in await world.kinds(question.stream)
