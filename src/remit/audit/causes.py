"""Causes of the steps of a job or session, as far as they are recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.errors import JournalError
from remit.journal import kinds as k
from remit.journal.lineage import whole
from remit.models.message import Message, ToolResult
from remit.models.message import decode as message_of
from remit.record.heads import stream_named
from remit.record.job_story import beside

if TYPE_CHECKING:
    from remit.journal.journal import Journal


class Causes:
    """The earlier steps that each step goes back to."""

    def __init__(self, journal: Journal) -> None:
        self.of: dict[str, dict[tuple[str, str], None]] = {}
        """By step: the earlier steps, each with why."""
        self._journal = journal
        self._wanted: dict[str, str] = {}
        """By the identifier of a call: the step of the model that wanted it."""
        self._made: dict[str, str] = {}
        """By the same: the step that made it."""
        self._ends: dict[int, str] = {}
        """By position in the stream at hand: the step that ended there."""

    async def read(self, job: str) -> None:
        """Read a job or session. Raise JournalError."""
        for stream in [stream_named(job), *await beside(self._journal, job)]:
            self._ends.clear()
            for event in await whole(self._journal, await self._journal.read(stream)):
                payload = k.decode(event.kind, event.data) if event.kind in _READ else None
                if isinstance(payload, k.ToolInvocationFinished):
                    self._ends[event.seq] = payload.step
                elif payload is not None:
                    await _READERS[event.kind](self, payload)

    def _add(self, step: str, earlier: str, why: str) -> None:
        if earlier and earlier != step:
            self.of.setdefault(step, {})[earlier, why] = None

    async def start(self, call: k.ToolInvocationStarted) -> None:
        """Take a call: the model that wanted it, and the results that rules looked at."""
        await self.refuse(call)
        for position in call.facts.seen.values() if call.facts is not msgspec.UNSET else ():
            self._add(call.step, self._ends.get(position, ""), "a rule looked at")

    async def refuse(self, call: k.ToolInvocationStarted | k.GateRefused) -> None:
        """Take a call that was refused: the model that wanted it."""
        self._made[call.call_id] = call.step
        self._add(call.step, self._wanted.get(call.call_id, ""), "asked for by")

    async def ask(self, question: k.CommandStarted) -> None:
        """Take a question to a model: the results that it reads."""
        for added in question.added:
            message = _message(await self._bytes(added.body, added.body_blob))
            for block in message.blocks if message is not None else ():
                if isinstance(block, ToolResult):
                    self._add(question.step, self._made.get(block.id, ""), "read")

    async def answer(self, answer: k.CommandCommitted) -> None:
        """Take the answer of a model: the calls that it wants."""
        message = _message(await self._bytes(answer.result, answer.result_blob))
        for call in message.calls if message is not None else ():
            self._wanted[call.id] = answer.step

    async def undo(self, undone: k.StepCompensated) -> None:
        """Take that a step undid another."""
        self._add(undone.undo_step, undone.step, "undoes")

    async def _bytes(self, inline: k.OptionalRaw, ref: k.OptionalRef) -> bytes:
        try:
            return await self._journal.value(inline, ref) or b""
        except JournalError:
            return b""  # erased or gone: what else is recorded is told all the same


def _message(recorded: bytes) -> Message | None:
    try:
        return message_of(recorded) if recorded else None
    except msgspec.DecodeError:
        return None  # of an older Remit, or a value of another form


_READERS: Final[dict[str, Callable[[Causes, Any], Awaitable[None]]]] = {
    k.ToolInvocationStarted.KIND: Causes.start,
    k.GateRefused.KIND: Causes.refuse,
    k.CommandStarted.KIND: Causes.ask,
    k.CommandCommitted.KIND: Causes.answer,
    k.StepCompensated.KIND: Causes.undo,
}
_READ: Final = {*_READERS, k.ToolInvocationFinished.KIND}
