"""Undoes what a job has done: the recorded undo calls, the last step first, each once and through the gateway.

An undo call is an effect of its own, at the step `undo:<step>`. If it fails for good, a person decides: `retry` makes
it again (as `undo:<step>:2`, a new intent with a key of its own), `done` leaves the step as it is, `fail` too, and says
so. The undo of a step whose outcome is unknown waits until that is decided (rule 3).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.jobs.effects.outcomes import recorded_outcome
from remit.jobs.effects.port import Answer, CallRequest, Wait
from remit.jobs.records import CallRecord
from remit.jobs.state import UNDO_DECISION, History, undo_step
from remit.journal.kinds import (
    CompensationCompleted,
    CompensationStarted,
    ErrorInfo,
    StepCompensated,
    ToolInvocationStarted,
    UndoDeclared,
)

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.jobs.effects.calls import Calls
    from remit.jobs.effects.doubt import Doubts
    from remit.jobs.effects.recorder import Recorder
    from remit.jobs.effects.waits import Waits

FindUndo = Callable[[str], Awaitable[UndoDeclared]]
"""Finds the undo of a step that its recipe makes from the step's value. Raises VersionError if the code is not here."""


class Compensation:
    """Undoes steps of one job."""

    def __init__(self, recorder: Recorder, calls: Calls, doubts: Doubts, waits: Waits, find_undo: FindUndo) -> None:
        self._recorder = recorder
        self._calls = calls
        self._doubts = doubts
        self._waits = waits
        self._find_undo = find_undo

    async def run(self, step: str = "") -> CompensationCompleted:
        """Undo every step of a compensation; one of a recipe, at a place, begins here and takes what has ended."""
        await self._recorder.begin()
        history = await self._recorder.folded()
        if step in history.compensated:
            return history.compensated[step]
        started = history.compensations.get(step)
        if started is None:
            started = CompensationStarted(step=step, steps=tuple(history.undoable(unknown=False)))
            await self._recorder.record(started)
        for each in started.steps:
            if each not in history.undone:
                undone = await self._undo(history, each)
                history.undone[each] = undone
                await self._recorder.record(undone)
        done = tuple(each for each in started.steps if history.undone[each].outcome == "compensated")
        completed = CompensationCompleted(
            step=step, undone=done, left=tuple(each for each in started.steps if each not in done)
        )
        await self._recorder.record(completed)
        await self._recorder.end()
        return completed

    async def _undo(self, history: History, step: str) -> StepCompensated:
        record, reason = history.calls[step], ""
        if record.unknown and record.started is not None and not await self._happened(record.started):
            why = ErrorInfo(code=Code.STEP_FAILED.name, message="it did not happen")
            return StepCompensated(step=step, undo_step=undo_step(step), outcome="skipped", error=why)
        if record.finished is not None and record.finished.step_outcome == "compensatable_failure":
            reason = f"step {step} failed and may have taken effect: undo it?"
        return await self._until_undone(history, step, reason)

    async def _until_undone(self, history: History, step: str, reason: str) -> StepCompensated:
        """Call until the step is undone or a person leaves it; `reason` is a question to ask before the first call."""
        attempt, error = 0, ErrorInfo(code=Code.STEP_FAILED.name, message=reason)
        while True:
            attempt += 1
            at = undo_step(step, attempt)
            tool = ""
            if attempt > 1 or not reason:
                tool, outcome = await self._call(history, step, at)
                if outcome.ok:
                    return StepCompensated(step=step, undo_step=at, tool_name=tool)
                code = outcome.code or Code.STEP_FAILED
                error = ErrorInfo(code=code.name, message=outcome.reason, remedy=outcome.remedy, step=at)
                reason = f"step {step} is not undone: {tool}: {outcome.reason}"
            answer = await self._waits.until(Wait(step=at, type="human", key=UNDO_DECISION, reason=reason, attempt=0))
            if answer.payload["decision"] != "retry":
                return _left(step, at, tool, error, answer)

    async def _call(self, history: History, step: str, at: str) -> tuple[str, Outcome]:
        declared = history.undos[step]
        if not declared.tool_name:
            declared = history.undos[step] = await self._find_undo(step)
        record = history.calls.get(at) or CallRecord()
        if record.ended:
            return declared.tool_name, await recorded_outcome(record, self._recorder.journal)
        encoded = await self._recorder.journal.value(declared.args, declared.args_blob)
        args: dict[str, Any] = msgspec.json.decode(encoded) if encoded is not None else {}
        request = CallRequest(step=at, tool=declared.tool_name, args=args, hash=digest(args), timeout_s=None)
        return declared.tool_name, await self._calls.make(request, record)

    async def _happened(self, started: ToolInvocationStarted) -> bool:
        """Return whether an attempt with an unknown outcome had its effect: its provider or a person says so."""
        encoded = await self._recorder.journal.value(started.args, started.args_blob)
        args: dict[str, Any] = msgspec.json.decode(encoded) if encoded is not None else {}
        request = CallRequest(step=started.step, tool=started.tool_name, args=args, hash="", timeout_s=None)
        outcome = await self._doubts.find_out(request, started)
        return outcome is not None and outcome.ok


def _left(step: str, at: str, tool: str, error: ErrorInfo, answer: Answer) -> StepCompensated:
    """A person leaves the step as it is: `done` because nothing is to be done any more, `fail` because it failed."""
    failed = answer.payload["decision"] == "fail"
    message = answer.payload["reason"] or error.message
    return StepCompensated(
        step=step,
        undo_step=at,
        tool_name=tool,
        outcome="failed" if failed else "skipped",
        error=msgspec.structs.replace(error, message=message),
        decided_by=answer.by,
    )
