"""Records what a live execution does, in the job's stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from remit.jobs.state import History
from remit.journal.blobs import pack
from remit.journal.kinds import Payload, RecoveryCompleted, UndoDeclared
from remit.journal.lineage import whole

if TYPE_CHECKING:
    from remit.jobs.spans import Activity
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter


class Recorder:
    """The only writer of a job's effects in this process."""

    def __init__(
        self,
        journal: Journal,
        writer: StreamWriter,
        history: History,
        activity: Activity,
        *,
        step_by_step: bool = False,
    ) -> None:
        self.journal = journal
        self.writer = writer
        self.history = history
        self.activity = activity
        self._replayed = len(history.places)
        self._step_by_step = step_by_step

    def now(self) -> int:
        """Microseconds since the Unix epoch."""
        return self.journal.clock.now()

    async def begin(self) -> None:
        """Begin a new effect: everything recorded has been replayed by now."""
        if self.activity.halting:
            await self.activity.halt()
        if self.history.recovering:
            self.history.recovering = False
            await self.record(RecoveryCompleted(replayed_steps=self._replayed))

    async def record(self, payload: Payload, blobs: tuple[Any, ...] = ()) -> None:
        """Append an event, to be committed with the next batch."""
        await self.journal.append(self.writer, payload, synced=False, blobs=blobs)

    async def folded(self) -> History:
        """Everything recorded of the job by now."""
        await self.journal.drained()
        return History(await whole(self.journal, await self.journal.read(self.writer.stream)))

    async def declare(self, step: str, undo: tuple[str, dict[str, Any]] | None) -> None:
        """Record the call that undoes a step, or that the recipe makes it from the step's value."""
        if undo is None:
            declared = self.history.undos[step] = UndoDeclared(step=step)
            await self.record(declared)
        else:
            tool, args = undo[0], pack(msgspec.json.encode(undo[1]))
            declared = UndoDeclared(step=step, tool_name=tool, args=args.inline, args_blob=args.ref)
            self.history.undos[step] = declared
            await self.record(declared, args.blobs)

    async def end(self) -> None:
        """End an effect that is recorded; the job ends no process by what it did until here."""
        self.history.deaths.forget()
        if self._step_by_step:
            await self.activity.halt()
