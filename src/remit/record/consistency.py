"""Events checked against themselves: what in an event follows from other recorded facts (`remit verify`).

Anyone who changes an event and chains the stream again by the public formula has to change all of these as well, alike:

    a call's `arguments_hash`      the digest of its arguments
    a call's `idempotency_key`     stream, step, tool and arguments; or the key of an earlier attempt at the step
    a plan's `plan_hash`           the digest of its task graph
    a call                         is announced once, and ends after it was announced
    a call with a confirmation     is the one that spent it, and on the first attempt the one that was asked about
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from remit.canonical import digest, sha256
from remit.errors import NotCanonicalError, PayloadErasedError
from remit.gateway.announcing import key_of
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.jobs.state import KIND as JOB
from remit.jobs.state import stream_of
from remit.journal.kinds import (
    CommandCommitted,
    CommandStarted,
    ConfirmationRequested,
    ConfirmationUsed,
    JobForked,
    Payload,
    PlanGenerated,
    ToolInvocationFinished,
    ToolInvocationStarted,
    decode,
)

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal

_ENDS: Final = (ToolInvocationFinished, CommandCommitted)
_KINDS: Final = frozenset(
    kind.KIND
    for kind in (
        CommandCommitted,
        CommandStarted,
        ConfirmationRequested,
        ConfirmationUsed,
        JobForked,
        PlanGenerated,
        ToolInvocationFinished,
        ToolInvocationStarted,
    )
)


class _Digest(NamedTuple):
    """A field that is the digest of a value in the same event."""

    field: str
    value: str


_DIGESTS: Final[dict[type[Payload], _Digest]] = {
    ToolInvocationStarted: _Digest("arguments_hash", "args"),
    PlanGenerated: _Digest("plan_hash", "task_graph"),
}

_NOTED: Final = frozenset({CommandStarted, ConfirmationRequested, ConfirmationUsed, JobForked, ToolInvocationStarted})


class _Call(NamedTuple):
    """A call that was announced under a confirmation."""

    stream: str
    confirmation: str
    tool: str
    """Empty: a model was asked, or it is a later attempt: those may have other arguments."""
    arguments: str


class Consistency:
    """Finds contradictions stream by stream, and at the end those between calls and their questions."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._calls: dict[str, _Call] = {}
        """By invocation."""
        self._streams: set[str] = set()
        """Those that were looked at and whose calls are known."""
        self._asked: dict[str, tuple[str, str]] = {}
        """The tool and the digest of the arguments of each question, by its stream."""
        self._forks: list[tuple[str, JobForked]] = []
        self._used: dict[str, str] = {}
        """The invocation that spent an approval, by the stream of its question."""

    async def contradictions(self, stream: str, events: Sequence[Event]) -> list[str]:
        """Say in which of its events a stream contradicts itself, each time in a sentence; its chain holds."""
        self._streams.add(stream)
        reading, found = _Reading(stream), list[str]()
        for event in events:
            if event.kind not in _KINDS:
                reading.pass_over()
                continue
            payload = decode(event.kind, event.data)
            if payload is None:
                continue
            said = reading.take(payload)
            if type(payload) in _DIGESTS:
                said.append(await self._digest(payload))
            found += [
                f"{stream}: event {event.seq} ({event.kind}) contradicts itself: {words}" for words in said if words
            ]
            if type(payload) in _NOTED:
                await self._note(stream, payload, taken=reading.taken)
        return found

    async def between(self) -> list[tuple[str, str]]:
        """Say which calls and questions contradict one another: the stream, and a sentence.

        Streams are read one after the other while others write: who seems to miss something is read again.
        """
        found: list[tuple[str, str]] = []
        for question, invocation in tuple(self._used.items()):
            caller, _, confirmation = question.rpartition(f"/{CONFIRMATION}/")
            known = caller in self._streams and caller.startswith(f"{JOB}/")  # of a session, another one may spend it
            if known and invocation not in self._calls:
                await self._again(caller)
            call = self._calls.get(invocation)
            if call is None:
                if known:
                    found.append((question, f"it was spent on {invocation}, which was never announced"))
            elif call.confirmation != confirmation:
                found.append((call.stream, f"{invocation} spent {confirmation}, and names another confirmation"))
            elif call.tool and (call.tool, call.arguments) != self._asked.get(question, (call.tool, call.arguments)):
                found.append((call.stream, f"{invocation} is not the call that {confirmation} asked about"))
        for invocation, call in tuple(self._calls.items()):
            question = f"{call.stream}/{CONFIRMATION}/{call.confirmation}"
            if question in self._streams and question not in self._used:
                await self._again(question)
                if question not in self._used:
                    found.append((call.stream, f"{invocation} ran on {call.confirmation}, which no call spent"))
        return [*found, *[one async for one in self._misplaced()]]

    async def _misplaced(self) -> AsyncIterator[tuple[str, str]]:
        """Give the forks that do not begin after the event that they name."""
        for stream, forked in self._forks:
            page = await self._journal.page(stream_of(forked.job), forked.seq - 1, 1)
            if [event.hash.hex() for event in page] != [forked.hash]:
                yield stream, f"it begins after another event of {forked.job} than it says"

    async def _again(self, stream: str) -> None:
        await self.contradictions(stream, await self._journal.read(stream))

    async def _note(self, stream: str, payload: Payload, *, taken: bool) -> None:
        """Keep what other streams have to agree with."""
        if isinstance(payload, ConfirmationRequested):
            if stream.endswith(f"/{CONFIRMATION}/{payload.confirmation}") and payload.tool_name:
                arguments = await self._hash(payload, "args")
                if arguments:
                    self._asked[stream] = (payload.tool_name, arguments)
        elif isinstance(payload, JobForked) and payload.shared:
            self._forks.append((stream, payload))
        elif isinstance(payload, ConfirmationUsed):
            self._used[stream] = payload.invocation_id
        elif isinstance(payload, ToolInvocationStarted) and payload.confirmation and not taken:
            tool = payload.tool_name if payload.attempt == 1 and payload.arguments_hash else ""
            self._calls[payload.invocation_id] = _Call(stream, payload.confirmation, tool, payload.arguments_hash)
        elif isinstance(payload, CommandStarted) and payload.confirmation and not taken:
            self._calls[payload.invocation_id] = _Call(stream, payload.confirmation, "", "")

    async def _digest(self, payload: Payload) -> str:
        row = _DIGESTS.get(type(payload))
        said = getattr(payload, row.field) if row is not None else ""
        if row is None or not said:
            return ""
        inline = getattr(payload, row.value)
        if isinstance(inline, msgspec.Raw) and sha256(bytes(inline)) == said:
            return ""  # it was recorded in canonical form
        found = await self._hash(payload, row.value)
        return "" if found in {"", said} else f"{row.field} is not the digest of its {row.value}"

    async def _hash(self, payload: Payload, name: str) -> str:
        """Return the digest of a value that an event keeps; empty: it is not there, or was erased."""
        try:
            data = await self._journal.value(getattr(payload, name), getattr(payload, f"{name}_blob"))
        except PayloadErasedError:
            return ""
        try:
            return digest(msgspec.json.decode(data)) if data is not None else ""
        except (msgspec.DecodeError, NotCanonicalError):
            return "none"


class _Reading:
    """One stream, event by event."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._begun: dict[str, str] = {}
        """The step of each invocation that was announced."""
        self._keys: dict[str, set[str]] = {}
        """The idempotency keys of each step so far."""
        self._foreign: float = 0
        """Events that follow and were recorded by the job that they were taken over from."""
        self._shares = False
        """Whether it continues the events of another job, which are in that job's stream."""
        self.taken = False
        """Whether the last event was recorded by another job."""

    def pass_over(self) -> None:
        """Count an event in which nothing follows from anything."""
        self._foreign = max(0, self._foreign - 1)

    def take(self, payload: Payload) -> list[str]:
        """Take in an event; what in it contradicts those before."""
        self.taken = self._foreign > 0
        self.pass_over()
        if isinstance(payload, JobForked):
            self._shares = payload.shared
            self._foreign = payload.changes if payload.shared else payload.taken or float("inf")
            return []
        if isinstance(payload, ToolInvocationStarted):
            said = self._announced(payload.invocation_id, payload.step)
            return said if self._has_its_key(payload) else [*said, "idempotency_key is not that of its call"]
        if isinstance(payload, CommandStarted):
            return self._announced(payload.invocation_id, payload.step)
        if isinstance(payload, _ENDS) and payload.invocation_id:
            if payload.invocation_id not in self._begun:
                return [] if self._shares else [f"{payload.invocation_id} ended and was not announced"]
            if self._begun[payload.invocation_id] != payload.step:
                return [f"{payload.invocation_id} was announced for another step"]
        return []

    def _announced(self, invocation: str, step: str) -> list[str]:
        again = invocation in self._begun
        self._begun[invocation] = step
        return [f"{invocation} was announced before"] if again else []

    def _has_its_key(self, call: ToolInvocationStarted) -> bool:
        earlier = self._keys.setdefault(call.step, set())
        continued = self._shares and call.attempt > 1
        known = not call.idempotency_key or self.taken or continued or call.idempotency_key in earlier
        earlier.add(call.idempotency_key)
        return known or call.idempotency_key == key_of(self._stream, call.step, call.tool_name, call.arguments_hash)
