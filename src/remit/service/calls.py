"""Calls from outside jobs that outlive the request that made them, each in a stream of its own: `call/<id>`.

These are the calls under an idempotency key, and those that ask a person. Whichever process meets such a call again
continues it: with the answer of the person, the recorded outcome, or what the provider knows of an announced call.

    running     made by the process that holds the stream's lease; without a lease, its process died
    waiting     asks a person; the same call made again continues it
    uncertain   may have had its effect; asked about again when the call is made again
    done        the outcome is recorded; closed
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError, JournalError, NotFoundError
from remit.gateway.call import GateRequest, Progress, asked, no_progress
from remit.gateway.outcome import Outcome, in_doubt, refused
from remit.ids import encode, new_id
from remit.jobs.effects.calls import repeats
from remit.jobs.effects.outcomes import recorded_outcome
from remit.jobs.state import CallRecord, JobHistory
from remit.journal.event import HeadPatch, HeadQuery, StreamHead
from remit.journal.kinds import CallContinued, CallOpened, ErrorInfo, ToolInvocationFinished, ToolInvocationStarted
from remit.journal.kinds import decode as payload_of
from remit.journal.leases import HeldLease, LeaseTerms, heads_changed_within
from remit.record.heads import CALL
from remit.redact import line

if TYPE_CHECKING:
    from remit.gateway.pipeline import Gateway
    from remit.journal.journal import Journal
    from remit.journal.kinds import Payload
    from remit.journal.writer import StreamWriter
    from remit.tools.peer import Peer

_WAITING: Final = "waiting"
_RUNNING: Final = "running"
_UNCERTAIN: Final = "uncertain"
_DONE: Final = "done"
_ALIKE: Final = 100
"""Open calls that are alike at most, of which one is taken."""
_NAME: Final = 200
_UNAVAILABLE: Final = 503
"""HTTP status of refusals that may not hold later."""
_UNKNOWN: Final = "the call may have taken effect, and there is no record of it"
_LOOK: Final = "Find out what happened, then make the call again; if it had a key, use a new one."

Ask = Callable[[str], Awaitable[bool]]
"""Puts a confirmation to the person at the caller; whether it is decided now."""


class Within(msgspec.Struct, frozen=True):
    """The session that makes a call."""

    session: str
    writer: Callable[[], Awaitable[StreamWriter]]
    """Gives the writer of its stream."""


class LiveCaller(msgspec.Struct, frozen=True):
    """The way to the caller of this process while its call runs; not carried over a wire."""

    progress: Progress = no_progress
    peer: Peer | None = None
    ask: Ask | None = None


NOT_LIVE: Final = LiveCaller()


class DirectCalls:
    """Makes calls that have streams of their own."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._journal = gateway.services.journal
        self._confirmations = gateway.services.confirmations
        self._turns = TurnTaking(self._journal)
        self._taken: set[str] = set()
        """Streams that calls of this process are at: two alike that are made at once are two calls."""

    # --- calls that ask

    async def asking(self, within: Within, request: GateRequest, live: LiveCaller) -> Outcome:
        """Make a call that policy wants a person to approve, or continue one like it that waits."""
        opened = self._opened(within.session, request, new_id("call"))
        for stream in await self._alike(opened):
            outcome = await self._alone(stream, within, request, live)
            if outcome is not None:
                return outcome
        while True:
            await self._create(opened)
            outcome = await self._alone(f"{CALL}/{opened.call}", within, request, live)
            if outcome is not None:
                return outcome
            # another process was faster to continue it
            opened = msgspec.structs.replace(opened, call=new_id("call"), step=new_id("s"))

    async def _alone(self, stream: str, within: Within, request: GateRequest, live: LiveCaller) -> Outcome | None:
        """Continue a call that no other one of this process is at; None if it is not ours to continue with."""
        if stream in self._taken:
            return None
        self._taken.add(stream)
        try:
            return await self._at(stream, within, request, live)
        finally:
            self._taken.discard(stream)

    async def _alike(self, opened: CallOpened) -> list[str]:
        """Streams of calls like this one that did not end, oldest first, those that a person has decided on before."""
        query = HeadQuery(kind=CALL, states=(_WAITING, _RUNNING), labels={"alike": _alike_of(opened)}, limit=_ALIKE)
        heads = (await self._journal.heads(query))[::-1]
        if len(heads) < 2:  # noqa: PLR2004 - nothing to choose from
            return [head.stream for head in heads]
        decided = [head.stream for head in heads if await self._is_decided(head)]
        return [*decided, *(head.stream for head in heads if head.stream not in decided)]

    async def _is_decided(self, head: StreamHead) -> bool:
        _, record, _ = await self._read(head.stream)
        return await self._decided(head.stream, record)

    async def _decided(self, stream: str, record: CallRecord) -> bool:
        if record.confirmation is None:
            return False
        question = await self._confirmations.newest(stream, record.confirmation)
        return question is not None and question.state != "pending"

    async def _continue(self, turn: HeldLease, opened: CallOpened, within: Within) -> None:
        """Record in both streams that the call goes on in another session than the one that asked."""
        again = CallContinued(
            call=opened.call,
            step=opened.step,
            session=within.session,
            asked_in=opened.session,
            tool_name=opened.tool_name,
        )
        await self._journal.append(await within.writer(), again, synced=False)
        await self._journal.append(turn.writer, again, synced=False)

    # --- calls under a key

    async def under_key(self, within: Within, request: GateRequest, key: str, live: LiveCaller) -> Outcome:
        """Make the call of a principal's key once; again, give its outcome. Another call under the key is refused."""
        key_hash = _hash(f"{request.principal}\0{key}")
        call = f"call_{encode(int(key_hash[:32], 16))}"
        opened = self._opened(within.session, request, call, key_hash)
        stream = f"{CALL}/{call}"
        if await self._journal.head(stream) is None:
            with suppress(AppendConflictError):  # made at the same moment
                await self._create(opened)
        before, _, _ = await self._read(stream)
        if (before.key_hash, before.request_hash) != (key_hash, opened.request_hash):
            reason = f"the key was used before, for another call of {before.tool_name}"
            return refused(Code.IDEMPOTENCY_MISMATCH, reason, "Use a new key for each call.")
        while True:
            outcome = await self._at(stream, within, request, live)
            if outcome is not None:
                return outcome
            head = await self._turns.wait(stream)
            if head is None or head.closed:
                _, record, _ = await self._read(stream)
                return await self._recorded(record)

    # --- common

    def _opened(self, session: str, request: GateRequest, call: str, key_hash: str = "") -> CallOpened:
        return CallOpened(
            call=call,
            session=session,
            step=request.step,
            principal=request.principal,
            tool_name=line(request.tool, _NAME),
            request_hash=asked(request.tool, request.hash),
            key_hash=key_hash,
        )

    async def _create(self, opened: CallOpened) -> None:
        labels = {"session": opened.session, "principal": opened.principal}
        if not opened.key_hash:
            labels["alike"] = _alike_of(opened)
        patch = HeadPatch(state=_RUNNING, title=opened.tool_name, labels=labels)
        await self._journal.create(f"{CALL}/{opened.call}", CALL, opened, patch=patch)

    async def _read(self, stream: str) -> tuple[CallOpened, CallRecord, str]:
        """A call, what is recorded of it, and the session that made it last."""
        events = await self._journal.read(stream)
        opened = payload_of(events[0].kind, events[0].data) if events else None
        if not isinstance(opened, CallOpened):
            raise NotFoundError(f"{stream} is not a call", code=Code.STREAM_NOT_FOUND)
        payloads = [payload_of(event.kind, event.data) for event in events if event.kind == CallContinued.KIND]
        sessions = [
            payload.session for payload in (opened, *payloads) if isinstance(payload, CallOpened | CallContinued)
        ]
        return opened, JobHistory(events).calls.get(opened.step, CallRecord()), sessions[-1]

    async def _at(self, stream: str, within: Within, request: GateRequest, live: LiveCaller) -> Outcome | None:
        """Continue a call until it ends or waits for people elsewhere; None if it is not ours to continue with."""
        while True:
            try:
                outcome = await self._turn(stream, within, request, live)
            except AppendConflictError:
                return None  # the lease was lost: another process continues it
            if outcome is None or outcome.confirmation is None or outcome.status != "pending" or live.ask is None:
                return outcome
            if not await live.ask(outcome.confirmation):
                return outcome

    async def _turn(self, stream: str, within: Within, request: GateRequest, live: LiveCaller) -> Outcome | None:
        async with self._turns.taken(stream, CALL) as turn:
            if turn is None:
                return None
            opened, record, session = await self._read(stream)
            outcome = await self._settled(turn, record)
            if outcome is None:
                if within.session != session and (record.confirmation is None or await self._decided(stream, record)):
                    await self._continue(turn, opened, within)
                outcome = await self._made(turn, opened, record, request, live)
            state = _state_after(outcome, opened)
            await turn.release(patch=HeadPatch(state=state, closed=state == _DONE, due_at=None))
            return outcome

    async def _made(
        self, turn: HeldLease, opened: CallOpened, record: CallRecord, request: GateRequest, live: LiveCaller
    ) -> Outcome:
        again = msgspec.structs.replace(
            request,
            step=opened.step,
            attempt=record.attempts + 1,
            repeats=record.repeats,
            confirmation=record.confirmation,
        )
        return await self._gateway.call(again, turn.writer, live.progress, live.peer)

    async def _settled(self, turn: HeldLease, record: CallRecord) -> Outcome | None:
        """The outcome of a call that was made before; None: it is to be made, or made again."""
        if record.ended:
            again = (
                record.refused is not None
                and Code.recorded(record.refused.code, Code.POLICY_DENIED).http == _UNAVAILABLE
            )
            return None if again else await self._recorded(record)
        started = record.started
        if started is None:
            return None
        verdict = await self._gateway.reconcile(started, turn.writer)
        if isinstance(verdict, Outcome):
            return verdict
        if verdict == "never" or started.repeatable:
            record.repeats = repeats(started) if verdict != "never" else ""
            return None
        return await (self._recorded(record) if record.finished is not None else self._doubted(turn, started))

    async def _doubted(self, turn: HeldLease, started: ToolInvocationStarted) -> Outcome:
        """Record that nothing tells whether an announced call happened (rule 3)."""
        outcome = msgspec.structs.replace(in_doubt(_UNKNOWN, _LOOK), invocation_id=started.invocation_id)
        error = ErrorInfo(code=Code.OUTCOME_UNKNOWN.name, message=outcome.reason, remedy=outcome.remedy)
        finished = ToolInvocationFinished(
            invocation_id=started.invocation_id,
            step=started.step,
            outcome="failure",
            step_outcome="uncertain",
            error=error,
            effect=outcome.effect.known,
            effect_by=outcome.effect.by,
        )
        await self._journal.append(turn.writer, finished, synced=True)
        return outcome

    async def _recorded(self, record: CallRecord) -> Outcome:
        """The outcome that the journal holds."""
        if record.refused is None and record.finished is None:
            return in_doubt(_UNKNOWN, _LOOK)
        outcome = await recorded_outcome(record, self._journal)
        uncertain = record.finished is not None and record.finished.step_outcome == "uncertain"
        return msgspec.structs.replace(outcome, uncertain=True) if uncertain else outcome


def _state_after(outcome: Outcome, opened: CallOpened) -> str:
    """The state of a call after it was made: to be continued while it waits, is in doubt, or was refused for now."""
    refused_for_now = outcome.status == "blocked" and outcome.code is not None and outcome.code.http == _UNAVAILABLE
    if outcome.status == "pending" or refused_for_now or outcome.again is not None:
        return _WAITING
    return _UNCERTAIN if outcome.uncertain and opened.key_hash else _DONE


def _alike_of(opened: CallOpened) -> str:
    """The same for calls of one principal that are alike."""
    return _hash(f"{opened.principal}\0{opened.request_hash}")


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_LEASE_S: Final = 15.0
"""Seconds until a process that died gives way."""


class TurnTaking:
    """Takes turns with other tasks and processes."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._clock = journal.clock

    @asynccontextmanager
    async def taken(self, stream: str, kind: str) -> AsyncIterator[HeldLease | None]:
        """Hold a stream if it is free; None if it is held elsewhere, closed, or does not exist."""
        terms = LeaseTerms(kind=kind, owner=f"{os.getpid()}:{new_id('turn')}", seconds=_LEASE_S)
        lease = await self._journal.acquire(stream, terms.claim(self._clock.now()))
        if lease is None:
            yield None
            return
        held = HeldLease(self._journal, lease.head)
        renewing = asyncio.create_task(_keep(held, terms))
        try:
            yield held
        finally:
            renewing.cancel()
            with suppress(JournalError):  # the lease lapses
                await held.give_up(HeadPatch(due_at=None))

    async def begin(self, stream: str, kind: str, opened: Payload) -> None:
        """Make a stream that is held by turns, unless there is one."""
        if await self._journal.head(stream) is None:
            with suppress(AppendConflictError):  # another process was faster
                await self._journal.create(stream, kind, opened, patch=HeadPatch(state="open", due_at=None))

    @asynccontextmanager
    async def held(self, stream: str, kind: str, opened: Payload) -> AsyncIterator[HeldLease]:
        """Wait until no one else holds a stream, and hold it; without one it begins with `opened`."""
        await self.begin(stream, kind, opened)
        while True:
            async with self.taken(stream, kind) as held:
                if held is not None:
                    yield held
                    return
            await self.wait(stream)

    async def wait(self, stream: str) -> StreamHead | None:
        """Wait until a stream may be free, or is closed; its head, or None if it does not exist."""
        mark = await self._journal.heads_changed(0)
        while True:
            head = await self._journal.head(stream)
            now = self._clock.now()
            if head is None or head.closed or head.lease_until is None or head.lease_until <= now:
                return head
            mark = await heads_changed_within(self._journal, mark, (head.lease_until - now) / SECOND)


async def _keep(held: HeldLease, terms: LeaseTerms) -> None:
    with suppress(JournalError):  # the next append says what is wrong
        await held.keep(terms)
