"""A job's inbox: a stream that anyone may append to, beside the job's own, which has one writer (rule 4).

A message is left and its job woken in one transaction, so that no message is missed. What is read is proven first: a
message that was only written into the file decides nothing (rule 14).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, StateError
from remit.jobs.state import inbox_of, stream_of
from remit.journal.blobs import pack
from remit.journal.event import Blob, StreamHead
from remit.journal.kinds import CancelRequested, Payload, SignalSent, StepDecided, decode
from remit.journal.proven import ProvenStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.journal.journal import Journal

KIND: Final = "inbox"
Message = SignalSent | CancelRequested | StepDecided


class JobInbox:
    """The messages left for one job, as its worker has read them so far."""

    def __init__(self, journal: Journal, job: str) -> None:
        self._journal = journal
        self._stream = inbox_of(job)
        self._job_stream = stream_of(job)
        self._proven = ProvenStream(journal, self._stream)
        self.messages: list[tuple[int, Message]] = []
        """With their sequence numbers, oldest first."""

    async def refresh(self) -> None:
        """Read what came since. Raises ChainBrokenError if it does not chain to the head, or its seal does not hold."""
        for event in await self._proven.more():
            payload = decode(event.kind, event.data)
            if isinstance(payload, SignalSent | CancelRequested | StepDecided):
                self.messages.append((event.seq, payload))

    @property
    def cancel(self) -> CancelRequested | None:
        """The request to stop, if there is one."""
        return next((message for _, message in self.messages if isinstance(message, CancelRequested)), None)

    def signal(self, name: str, consumed: set[int]) -> tuple[int, SignalSent] | None:
        """The oldest signal of a name that nothing has used yet."""
        for seq, message in self.messages:
            if isinstance(message, SignalSent) and message.name == name and seq not in consumed:
                return seq, message
        return None

    def decision(self, step: str, attempt: int) -> tuple[int, StepDecided] | None:
        """The decision on an attempt: the first one, as it was corrected since. Others say nothing of this attempt."""
        decision: tuple[int, StepDecided] | None = None
        for seq, message in self.messages:
            if not isinstance(message, StepDecided) or (message.step, message.attempt) != (step, attempt):
                continue
            if decision is None or message.replaces == decision[0]:
                decision = seq, message
        return decision

    async def post(self, message: SignalSent | CancelRequested, value: bytes | None = None) -> None:
        """Leave a message durably, with a JSON value where its kind has one, and wake the job."""
        posted, blobs = _packed(message, value)
        await self._journal.post(self._stream, KIND, posted, blobs=blobs, wakes=(self._job_stream,))

    async def send(self, message: SignalSent, value: bytes, job: StreamHead) -> None:
        """Leave a signal durably, and wake the job; one that was left under the same key is not left twice."""
        if not message.key:
            await self.post(message, value)
            return
        await self._leave(message, value, job, lambda: self.has(message.key))

    def has(self, key: str) -> bool:
        """Return whether a signal was left under a key."""
        return any(isinstance(message, SignalSent) and message.key == key for _, message in self.messages)

    async def decide(self, message: StepDecided, value: bytes | None, job: StreamHead) -> None:
        """Leave the first decision on an attempt durably, and wake the job. Raises StateError if it has one."""

        def decided() -> bool:
            earlier = self.decision(message.step, message.attempt)
            if earlier is not None:
                raise _decided(earlier[1], "If it is wrong and no worker has used it, replace it.")
            return False

        await self._leave(message, value, job, decided)

    async def _leave(self, message: Message, value: bytes | None, job: StreamHead, decided: Callable[[], bool]) -> None:
        """Leave a message durably, and wake the job; `decided` looks whether it is there already."""
        posted, blobs = _packed(message, value)
        while True:
            head = await self._journal.head(self._stream)
            await self.refresh()
            if decided():
                return
            writer = self._journal.writer(self._stream, KIND, head, job)
            try:
                await self._journal.append(writer, posted, synced=True, blobs=blobs, wakes=(self._job_stream,))
            except AppendConflictError:
                continue  # someone left another message at the same moment
            return

    async def correct(self, message: StepDecided, value: bytes | None, job: StreamHead) -> bool:
        """Replace the decision on an attempt durably, or leave the first one if there is none; wake the job.

        `job` is the head of the job as the caller found it, with the attempt still in doubt. The correction and that
        head are one transaction: a worker that takes the job reads what is left here, before or after, never between.
        False: the job or its inbox has moved on; the caller looks again. Raises StateError if a worker holds the job.
        """
        head = await self._journal.head(self._stream)
        await self.refresh()
        earlier = self.decision(message.step, message.attempt)
        if earlier is not None and job.lease_owner is not None:
            raise _decided(earlier[1], "A worker has continued the job with it, so it can no longer be replaced.")
        packed, blobs = _packed(message, value)
        posted = msgspec.structs.replace(packed, replaces=earlier[0]) if earlier is not None else packed
        unmoved = self._journal.writer(self._job_stream, job.kind, job).draft()
        draft = self._journal.writer(self._stream, KIND, head).draft(posted)
        try:
            await self._journal.commit(unmoved, draft, synced=True, blobs=blobs, wakes=(self._job_stream,))
        except AppendConflictError:
            return False
        return True


def _decided(decision: StepDecided, remedy: str) -> StateError:
    msg = f"step {decision.step}, attempt {decision.attempt}: decided already, {decision.decision} by {decision.by}"
    return StateError(msg, code=Code.STEP_DECIDED, remedy=remedy)


def _packed(message: Message, value: bytes | None) -> tuple[Payload, tuple[Blob, ...]]:
    if value is None:
        return message, ()
    packed = pack(value)
    names = ("payload", "payload_blob") if isinstance(message, SignalSent) else ("value", "value_blob")
    values = dict(zip(names, (packed.inline, packed.ref), strict=True))
    return msgspec.structs.replace(message, **values), packed.blobs
