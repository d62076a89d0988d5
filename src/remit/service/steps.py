"""Steps of jobs: look at one whole, decide one whose outcome is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, StateError, UsageError
from remit.jobs.inbox import Inbox
from remit.jobs.records import CallRecord
from remit.jobs.state import History, stream_of
from remit.journal.event import UNSET
from remit.journal.kinds import ErrorInfo, GateRefused, StepDecided
from remit.journal.lineage import whole
from remit.operation import Body, By, operation
from remit.record.heads import open_job, stream_named
from remit.record.job_story import story_of, whole_step
from remit.record.task import error_view, step_row
from remit.record.values import encoded
from remit.record.views import StepView, TaskError
from remit.service.step_values import StepValues

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.record.story import Story


class Steps:
    """The steps of jobs in one journal."""

    def __init__(self, services: Services, principal: str, wake: Callable[[], None]) -> None:
        self._services = services
        self._journal = services.journal
        self._principal = principal
        self._wake = wake

    # --- queries

    @operation(
        "jobs.step",
        "GET /v1/jobs/{job}/steps/{step}",
        "read",
        "Show one step.",
        codes=(Code.JOB_NOT_FOUND, Code.STEP_NOT_FOUND),
    )
    async def view(self, job: str, step: str) -> StepView:
        """Show one step of a job, with its whole input and result.

        Raises NotFoundError (STEP_NOT_FOUND).
        """
        return await self.view_in(await story_of(self._journal, job), job, step)

    async def view_in(self, story: Story, job: str, step: str) -> StepView:
        """The same of a job whose story is at hand."""
        told = story.told(step)
        if told is None:
            remedy = f"`remit show {job}` lists its steps."
            raise NotFoundError(f"{job} has no step {step!r:.80}", code=Code.STEP_NOT_FOUND, remedy=remedy)
        values = StepValues(self._journal, story.history, stream_named(job))
        return StepView(
            row=step_row(told),
            args=await values.args(step, told.confirmations[-1].confirmation if told.confirmations else ""),
            value=await values.value(step),
            error=_error(story.history, step),
            evidence=told.evidence,
            narrative=await whole_step(self._journal, told),
        )

    # --- commands

    @operation(
        "steps.decide",
        "POST /v1/jobs/{job}/steps/{step}/decide",
        "decide",
        "Decide a step in doubt.",
        body=Body("StepDecision", "The outcome of a step."),
        status=204,
        codes=(Code.JOB_NOT_FOUND, Code.JOB_FINISHED, Code.STEP_NOT_FOUND, Code.STEP_NOT_WAITING, Code.STEP_DECIDED),
        example={"decision": "done", "value": {"sent": True}},
    )
    async def decide(
        self,
        job: str,
        step: str,
        decision: Literal["done", "retry", "fail"],
        value: Any = None,
        *,
        attempt: Annotated[int, msgspec.Meta(ge=1)] | None = None,
        by: By = "",
        reason: str = "",
        replace: bool = False,
    ) -> None:
        """Resolve a step whose end is not recorded; the first decision on an attempt counts.

        A person does that (rule 3). `attempt` is the one that was shown; without it, the attempt that waits now.
        `replace` corrects the decision that stands, as long as no worker has continued it. Raises NotFoundError or
        StateError, and UsageError (INVALID_INPUT) if the tool is known here and does not return what `value` is.
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
        history = History(await whole(self._journal, await self._journal.read(stream_of(job))))
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
        tool = self._services.catalog.known(started.tool_name) if started is not None else None
        if tool is None or tool.output is None or tool.quarantined is not None:
            return
        problems = tool.output.problems(value)
        if problems:
            msg = f"this is not what {tool.meta.name} returns: {problems[0]}"
            raise UsageError(msg, code=Code.INVALID_INPUT, remedy="Give a value that matches the tool's output schema.")


def _error(history: History, step: str) -> TaskError | None:
    """Return what a step ended with, if it did not end well."""
    record = history.calls.get(step) or history.models.get(step)
    if record is None:
        returned = history.returned.get(step)
        return error_view(returned.error) if returned is not None and returned.error is not None else None
    if record.refused is not None:
        return _refusal(record.refused)
    ended = record.finished if isinstance(record, CallRecord) else record.committed
    return error_view(ended.error) if ended is not None and ended.error is not None else None


def _refusal(refused: GateRefused) -> TaskError:
    return error_view(ErrorInfo(code=refused.code, message=refused.reason, step=refused.step, remedy=refused.remedy))
