"""Steps of jobs: decide the ones whose outcome is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from remit.codes import Code
from remit.errors import StateError
from remit.jobs.inbox import Inbox
from remit.jobs.state import History, stream_of
from remit.journal.kinds import StepDecided
from remit.service.heads import open_job
from remit.service.values import encoded

if TYPE_CHECKING:
    from remit.journal.journal import Journal


class Steps:
    """The steps of jobs in one journal."""

    def __init__(self, journal: Journal, principal: str, poke: Callable[[], None]) -> None:
        """`principal` decides if a call names no one else; `poke` wakes this process's engine."""
        self._journal = journal
        self._principal = principal
        self._poke = poke

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
    ) -> None:
        """Resolve a step whose outcome is unknown (rule 3); the first decision on an attempt counts.

        `attempt` is the one that was shown; without it, the attempt that waits now. Raises NotFoundError or StateError.
        """
        await open_job(self._journal, job)
        waits = History(await self._journal.read(stream_of(job))).in_doubt(step)
        if waits is None or attempt not in {None, waits}:
            what = f"step {step} of {job}" if attempt is None else f"attempt {attempt} of step {step} of {job}"
            msg = f"{what} does not wait for a decision"
            remedy = f"`remit show {job}` lists its steps; resume the job to see which one waits."
            raise StateError(msg, code=Code.STEP_NOT_FOUND, remedy=remedy)
        message = StepDecided(step=step, attempt=waits, decision=decision, by=by or self._principal, reason=reason)
        result = encoded(value, Code.INVALID_INPUT) if decision == "done" else None
        await Inbox(self._journal, job).decide(message, result)
        self._poke()
