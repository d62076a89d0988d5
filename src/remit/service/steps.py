"""Steps of jobs: look at one whole, decide one whose outcome is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from remit.codes import Code
from remit.errors import ChainBrokenError, NotFoundError, StateError, UsageError
from remit.jobs.inbox import Inbox
from remit.jobs.state import History, stream_of
from remit.journal.event import UNSET
from remit.journal.kinds import ErrorInfo, GateRefused, StepDecided, WaitCompleted
from remit.service.heads import head_of, open_job
from remit.service.rows import step_row
from remit.service.task import error_view
from remit.service.values import encoded, value_of
from remit.service.views import StepView, TaskError

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.tools.catalog import Catalog


class Steps:
    """The steps of jobs in one journal."""

    def __init__(self, journal: Journal, catalog: Catalog, principal: str, wake: Callable[[], None]) -> None:
        """`principal` decides if a call names no one else; `wake` wakes this process's engine."""
        self._journal = journal
        self._catalog = catalog
        self._principal = principal
        self._wake = wake

    # --- queries

    async def view(self, job: str, step: str) -> StepView:
        """One step, whole. Raises NotFoundError (STEP_NOT_FOUND)."""
        await head_of(self._journal, job)
        return await self.view_in(History(await self._journal.read(stream_of(job))), job, step)

    async def view_in(self, history: History, job: str, step: str) -> StepView:
        """The same of a job whose history is at hand."""
        row = step_row(history, step)
        if row is None:
            remedy = f"`remit show {job}` lists its steps."
            raise NotFoundError(f"{job} has no step {step!r:.80}", code=Code.STEP_NOT_FOUND, remedy=remedy)
        record, value = history.calls.get(step), history.values.get(step)
        if record is None:
            waited = next((wait.completed for (place, _), wait in history.waits.items() if place == step), None)
            payload = await _payload(self._journal, waited) if isinstance(waited, WaitCompleted) else None
            return StepView(row=row, value=value.value if value is not None else payload)
        started, finished = record.started, record.finished
        return StepView(
            row=row,
            args=await value_of(self._journal, started.args, started.args_blob) if started else None,
            value=await value_of(self._journal, finished.result, finished.result_blob) if finished else None,
            error=error_view(finished.error) if finished and finished.error else _refusal(record.refused),
            evidence=record.evidence,
        )

    # --- commands

    async def decide(
        self,
        job: str,
        step: str,
        decision: Literal["done", "retry", "fail"],
        value: Any = None,
        *,
        attempt: int | None = None,
        by: str = "",
        reason: str = "",
        replace: bool = False,
    ) -> None:
        """Resolve a step whose outcome is unknown (rule 3); the first decision on an attempt counts.

        `attempt` is the one that was shown; without it, the attempt that waits now. `replace` corrects the decision
        that stands, as long as no worker has continued it. Raises NotFoundError or StateError, and UsageError
        (INVALID_INPUT) if the tool is known here and does not return what `value` is.
        """
        result = encoded(value, Code.INVALID_INPUT) if decision == "done" else None
        while True:
            head = await open_job(self._journal, job)
            waits = await self._waiting(job, step, attempt, value if decision == "done" else UNSET)
            message = StepDecided(step=step, attempt=waits, decision=decision, by=by or self._principal, reason=reason)
            inbox = Inbox(self._journal, job)
            if not replace:
                await inbox.decide(message, result, head)
                break
            if await inbox.correct(message, result, head):
                break
        self._wake()

    async def _waiting(self, job: str, step: str, attempt: int | None, value: Any) -> int:
        """The attempt that waits for a decision; `value` is compared with what its tool returns, unless it is UNSET."""
        history = History(await self._journal.read(stream_of(job)))
        waits = history.in_doubt(step)
        if waits is None or attempt not in {None, waits}:
            what = f"step {step} of {job}" if attempt is None else f"attempt {attempt} of step {step} of {job}"
            msg = f"{what} is not waiting for a decision"
            remedy = f"`remit show {job}` lists its steps; resume the job to see which one waits."
            if step not in history.places and step not in history.calls:
                raise NotFoundError(f"{job} has no step {step!r:.80}", code=Code.STEP_NOT_FOUND, remedy=remedy)
            raise StateError(msg, code=Code.STEP_NOT_WAITING, remedy=remedy)
        if value is not UNSET and waits:
            self._check(history, step, value)
        return waits

    def _check(self, history: History, step: str, value: Any) -> None:
        """Compare what a person says a call returned with the tool's output schema."""
        record = history.calls.get(step)
        started = record.started if record is not None else None
        tool = self._catalog.known(started.tool_name) if started is not None else None
        if tool is None or tool.output is None or tool.quarantined is not None:
            return
        problems = tool.output.problems(value)
        if problems:
            msg = f"this is not what {tool.meta.name} returns: {problems[0]}"
            raise UsageError(msg, code=Code.INVALID_INPUT, remedy="Give a value that matches the tool's output schema.")


async def decided_since(journal: Journal, job: str, history: History) -> set[tuple[str, int]]:
    """The attempts of uncertain steps, as (step, attempt), that people decided on and the job has not seen yet."""
    doubts = [(step, attempt) for step in history.calls if (attempt := history.in_doubt(step)) is not None]
    if not doubts:
        return set()
    inbox = Inbox(journal, job)
    try:
        await inbox.refresh()
    except ChainBrokenError:
        return set()  # what is there decides nothing; the job's worker and `remit verify` name it
    return {(step, attempt) for step, attempt in doubts if inbox.decision(step, attempt) is not None}


async def _payload(journal: Journal, completed: WaitCompleted) -> Any:
    return await value_of(journal, completed.payload, completed.payload_blob)


def _refusal(refused: GateRefused | None) -> TaskError | None:
    if refused is None:
        return None
    return error_view(ErrorInfo(code=refused.code, message=refused.reason, step=refused.step, remedy=refused.remedy))
