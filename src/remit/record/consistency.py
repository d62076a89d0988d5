"""Events checked against themselves: what in an event follows from other recorded facts (`remit verify`).

Anyone who changes an event and chains the stream again by the public formula has to change all of these as well, alike:

    a call's `arguments_hash`      the digest of its arguments
    a call's `idempotency_key`     stream, step, tool and arguments; or the key of an earlier attempt at the step
    a plan's `plan_hash`           the digest of its task graph
    a call                         is announced once, and ends after it was announced
    a call with a confirmation     is the one that spent it, and on the first attempt the one that was asked about
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.canonical import digest, sha256
from remit.errors import NotCanonicalError, PayloadErasedError
from remit.gateway.call import key_of
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
)
from remit.journal.references import facts_of

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal


class _Digest(NamedTuple):
    """A field that is the digest of a value in the same event."""

    field: str
    value: str


_DIGESTS: Final[dict[str, _Digest]] = {
    ToolInvocationStarted.KIND: _Digest("arguments_hash", "args"),
    PlanGenerated.KIND: _Digest("plan_hash", "task_graph"),
}


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
        """Calls by invocation."""
        self._streams: set[str] = set()
        """Streams that were looked at and whose calls are known."""
        self._arguments: dict[str, tuple[str, str]] = {}
        """The tool and the digest of the arguments of each question, by its stream."""
        self._forks: list[tuple[str, JobForked]] = []
        self._used: dict[str, str] = {}
        """The invocation that spent an approval, by the stream of its question."""

    def reading(self, stream: str) -> StreamReading:
        """Begin to read a stream."""
        return StreamReading(self._journal, stream)

    async def add(self, reading: StreamReading) -> None:
        """Take in a stream that was read, and whose chain holds: what other streams have to agree with."""
        self._streams.add(reading.stream)
        self._calls |= reading.calls
        self._forks += [(reading.stream, forked) for forked in reading.forks]
        if reading.used:
            self._used[reading.stream] = reading.used
        if reading.question is not None and (arguments := await reading.hash_of(reading.question, "args")):
            self._arguments[reading.stream] = (reading.question.tool_name, arguments)

    async def between(self) -> list[tuple[str, str]]:
        """Say which calls and questions contradict one another: the stream, and a sentence.

        Streams are read one after the other while others write: who seems to miss something is read again.
        """
        problems: list[tuple[str, str]] = []
        for question, invocation in tuple(self._used.items()):
            caller, _, confirmation = question.rpartition(f"/{CONFIRMATION}/")
            known = caller in self._streams and caller.startswith(f"{JOB}/")  # of a session, another one may spend it
            if known and invocation not in self._calls:
                await self._again(caller)
            call = self._calls.get(invocation)
            if call is None:
                if known:
                    problems.append((question, f"it was spent on {invocation}, which was never announced"))
            elif call.confirmation != confirmation:
                problems.append((call.stream, f"{invocation} spent {confirmation}, and names another confirmation"))
            elif call.tool and (call.tool, call.arguments) != self._arguments.get(
                question, (call.tool, call.arguments)
            ):
                problems.append((call.stream, f"{invocation} is not the call that {confirmation} asked about"))
        for invocation, call in tuple(self._calls.items()):
            question = f"{call.stream}/{CONFIRMATION}/{call.confirmation}"
            if question in self._streams and question not in self._used:
                await self._again(question)
                if question not in self._used:
                    problems.append((call.stream, f"{invocation} ran on {call.confirmation}, which no call spent"))
        return [*problems, *[misplaced async for misplaced in self._misplaced()]]

    async def _misplaced(self) -> AsyncIterator[tuple[str, str]]:
        """Give the forks that do not begin after the event that they name."""
        for stream, forked in self._forks:
            page = await self._journal.page(stream_of(forked.job), forked.seq - 1, 1)
            if [event.hash.hex() for event in page] != [forked.hash]:
                yield stream, f"it begins after another event of {forked.job} than it says"

    async def _again(self, stream: str) -> None:
        reading, events = self.reading(stream), await self._journal.read(stream)
        await reading.take(events, [facts_of(event) for event in events])
        await self.add(reading)


class StreamReading:
    """Reading of one stream, page by page: where it contradicts itself, and what other streams have to agree with."""

    def __init__(self, journal: Journal, stream: str) -> None:
        self.stream = stream
        self.contradictions: list[str] = []
        """Contradictions within it, each in a sentence."""
        self.calls: dict[str, _Call] = {}
        """Calls that were announced under a confirmation, by invocation."""
        self.forks: list[JobForked] = []
        self.used = ""
        """The invocation that spent the approval, in the stream of a question."""
        self.question: ConfirmationRequested | None = None
        """The question that is the stream's own."""
        self._journal = journal
        self._begun: dict[str, str] = {}
        """The step of each invocation that was announced."""
        self._keys: dict[str, str] = {}
        """The idempotency key of the last attempt at each step."""
        self._earlier: dict[str, set[str]] = {}
        """Invocations of the attempts before it, where there were several."""
        self._taken_until: float = 0
        """The last event that was recorded by the job that it was taken over from."""
        self._shares = False
        """Whether it continues the events of another job, which are in that job's stream."""
        self._digests: list[tuple[Event, Payload, _Digest]] = []
        """Values whose digests are yet to be made."""
        self._takers: Final[Mapping[str, Callable[[Event, Any], None]]] = {
            CommandCommitted.KIND: self._end,
            CommandStarted.KIND: self._ask_model,
            ConfirmationRequested.KIND: self._ask,
            ConfirmationUsed.KIND: self._spend,
            JobForked.KIND: self._fork,
            PlanGenerated.KIND: self._check_digest,
            ToolInvocationFinished.KIND: self._end,
            ToolInvocationStarted.KIND: self._start,
        }

    async def take(self, events: Sequence[Event], payloads: Sequence[Payload | None]) -> None:
        """Take in the next events, with what they say."""
        takers = self._takers
        for event, payload in zip(events, payloads, strict=True):
            take = takers.get(event.kind)
            if take is not None and payload is not None:
                take(event, payload)
        digests, self._digests = self._digests, []
        for event, payload, row in digests:
            digest = await self.hash_of(payload, row.value)
            if digest not in {"", getattr(payload, row.field)}:
                self._contradict(event, f"{row.field} is not the digest of its {row.value}")

    async def hash_of(self, payload: Payload, name: str) -> str:
        """Return the digest of a value that an event keeps; empty: it is not there, or was erased."""
        try:
            data = await self._journal.value(getattr(payload, name), getattr(payload, f"{name}_blob"))
        except PayloadErasedError:
            return ""
        try:
            return digest(msgspec.json.decode(data)) if data is not None else ""
        except (msgspec.DecodeError, NotCanonicalError):
            return "none"

    def _start(self, event: Event, call: ToolInvocationStarted) -> None:
        self._announce(event, call.invocation_id, call.step)
        key, arguments = call.idempotency_key, call.arguments_hash
        last = self._keys.get(call.step, "")
        if last and last != key:
            self._earlier.setdefault(call.step, set()).add(last)
        self._keys[call.step] = key
        if key and key != last and key != key_of(self.stream, call.step, call.tool_name, arguments):
            continued = self._shares and call.attempt > 1
            if event.seq > self._taken_until and not continued and key not in self._earlier.get(call.step, ()):
                self._contradict(event, "idempotency_key is not that of its call")
        self._check_digest(event, call)
        if call.confirmation and event.seq > self._taken_until:
            tool = call.tool_name if call.attempt == 1 and arguments else ""
            self.calls[call.invocation_id] = _Call(self.stream, call.confirmation, tool, arguments)

    def _ask_model(self, event: Event, command: CommandStarted) -> None:
        self._announce(event, command.invocation_id, command.step)
        if command.confirmation and event.seq > self._taken_until:
            self.calls[command.invocation_id] = _Call(self.stream, command.confirmation, "", "")

    def _announce(self, event: Event, invocation: str, step: str) -> None:
        if invocation in self._begun:
            self._contradict(event, f"{invocation} was announced before")
        self._begun[invocation] = step

    def _end(self, event: Event, ended: ToolInvocationFinished | CommandCommitted) -> None:
        invocation = ended.invocation_id
        step = self._begun.get(invocation) if invocation else ended.step
        if step == ended.step:
            return
        if step is not None:
            self._contradict(event, f"{invocation} was announced for another step")
        elif not self._shares:
            self._contradict(event, f"{invocation} ended and was not announced")

    def _fork(self, event: Event, forked: JobForked) -> None:
        self._shares = forked.shared
        self._taken_until = event.seq + (forked.changes if forked.shared else forked.taken or float("inf"))
        if forked.shared:
            self.forks.append(forked)

    def _ask(self, _event: Event, question: ConfirmationRequested) -> None:
        if question.tool_name and self.stream.endswith(f"/{CONFIRMATION}/{question.confirmation}"):
            self.question = question

    def _spend(self, _event: Event, used: ConfirmationUsed) -> None:
        self.used = used.invocation_id

    def _check_digest(self, event: Event, payload: Payload) -> None:
        row = _DIGESTS[event.kind]
        expected, inline = getattr(payload, row.field), getattr(payload, row.value)
        if expected and not (
            isinstance(inline, msgspec.Raw) and sha256(bytes(inline)) == expected
        ):  # not in canonical form
            self._digests.append((event, payload, row))

    def _contradict(self, event: Event, words: str) -> None:
        self.contradictions.append(f"{self.stream}: event {event.seq} ({event.kind}) contradicts itself: {words}")
