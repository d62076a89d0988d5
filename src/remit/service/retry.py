"""Whether a job can be retried, and what its retry begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, StateError
from remit.jobs.program import PLANNER_VERSION
from remit.jobs.retry import failing_step
from remit.jobs.state import ENDED, KIND
from remit.journal.event import HeadQuery
from remit.journal.kinds import JobCreated, JobForked
from remit.journal.lineage import intervals
from remit.record.heads import head_of
from remit.record.states import shown_state
from remit.record.views import job_row

if TYPE_CHECKING:
    from remit.jobs.program import Programs
    from remit.jobs.state import JobHistory
    from remit.journal.event import StreamHead
    from remit.journal.journal import Journal

RETRY_OF: Final = "remit.retry_of"
"""Label of a job that retries another one: which."""
CONTINUES: Final = "remit.continues"
"""Label of a job that continues another one's conversation: which."""


class Retried(msgspec.Struct, frozen=True, kw_only=True):
    """A retry that was created."""

    job: str
    again: tuple[str, ...]
    """Recorded steps that run again."""


async def replayable(journal: Journal, job: str) -> StreamHead:
    """The head of a job. Raises NotFoundError, and StateError (JOB_NOT_REPLAYABLE) for a session."""
    head = await head_of(journal, job)
    if head.kind != KIND:
        reason = f"{job} is no job: a program outside made the call, and no recipe here can make it again"
        remedy = f"See what it did: remit trace {job}. Check its record: remit verify {job}."
        raise StateError(reason, code=Code.JOB_NOT_REPLAYABLE, remedy=remedy)
    return head


async def not_retried(journal: Journal, job: str, own: str = "") -> None:
    """Raise StateError (JOB_NOT_RETRYABLE) if a retry of the job exists: it may have done what this one would do.

    `own` is left out: the retry that an earlier attempt at the same request created.
    """
    heads = await journal.heads(HeadQuery(kind=KIND, labels={RETRY_OF: job}, limit=2))
    others = [row for head in heads if (row := job_row(head)).job != own]
    if others:
        other = others[0]
        verb = "retry" if other.state in {"failed", "cancelled"} else "show" if other.state in ENDED else "resume"
        remedy = f"Continue the retry: remit {verb} {other.job}"
        reason = f"{job} was retried by {other.job}, which is {other.state}"
        raise StateError(reason, code=Code.JOB_NOT_RETRYABLE, remedy=remedy)


def checked_step(head: StreamHead, history: JobHistory, step: str) -> str:
    """The step from which a job is retried. Raises StateError (JOB_NOT_RETRYABLE) or NotFoundError."""
    job = job_row(head).job
    if head.state not in ENDED:
        raise _not_retryable(
            f"{job} has not ended: it is {shown_state(job_row(head))}", f"Continue it: remit resume {job}"
        )
    if head.subject:
        reason = f"{job} is about the subject {head.subject}, whose values are kept for that job alone"
        raise _not_retryable(reason, "Start a new job.")
    if head.state == "completed" and not step:
        raise _not_retryable(f"{job} is completed", f"Choose a step: remit retry {job} --from STEP")
    if step and step not in history.places:
        raise NotFoundError(f"{job} has no step {step}", code=Code.STEP_NOT_FOUND, remedy=f"See remit show {job}.")
    return step or failing_step(history)


def repeats(job: str, steps: Sequence[str]) -> StateError:
    """The refusal of a retry that would do again what was done (rule 2)."""
    reason = f"the retry of {job} would repeat calls that took effect, or may have: step {', '.join(steps)}"
    remedy = (
        f"See what they did: remit trace {job}. Give a step the result that it had with "
        f"`remit fork {job} --set STEP.result=JSON`, choose a later step with --from, or repeat them with --repeat."
    )
    return StateError(reason, code=Code.RETRY_REPEATS, remedy=remedy)


def fork_of(
    head: StreamHead, step: str, times: Sequence[int], before: JobForked | None, *, by: str, reason: str
) -> JobForked:
    """The record that a job takes over events of another one, which were recorded at these times.

    `before`: where that one was taken from; the tools and models that a fork changed stay changed.
    """
    return JobForked(
        job=job_row(head).job,
        seq=head.seq,
        hash=head.hash.hex(),
        step=step,
        by=by,
        reason=reason,
        taken=len(times),
        times=intervals(times),
        tools=before.tools if before else {},
        models=before.models if before else {},
    )


def renewed(history: JobHistory, programs: Programs) -> JobCreated:
    """Give the new job's creation: as the other one's, for the code of today. Raises NotFoundError (UNKNOWN_RECIPE)."""
    created = history.created
    if created is None:
        raise StateError("the job's first event is missing", remedy="Run `remit verify` on it.")
    if created.kind == "plan":
        return msgspec.structs.replace(created, execution_version=PLANNER_VERSION, planner_version=PLANNER_VERSION)
    recipe = programs.recipes.get(created.name)
    return msgspec.structs.replace(created, execution_version=recipe.execution_version, module=recipe.file)


def _not_retryable(reason: str, remedy: str) -> StateError:
    return StateError(reason, code=Code.JOB_NOT_RETRYABLE, remedy=remedy)
