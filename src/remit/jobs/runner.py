"""Jobs as the work of an engine (engines/port.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from remit.jobs.execution import JobExecution
from remit.jobs.services import JobServices
from remit.jobs.state import KIND

if TYPE_CHECKING:
    from remit.chance import Chance
    from remit.gateway.pipeline import Gateway
    from remit.jobs.program import Programs
    from remit.jobs.versions import Versions
    from remit.journal.event import Lease
    from remit.journal.journal import Journal


class Runner:
    """Runs leased jobs with the services of this process."""

    kind: Final = KIND
    """The kind of the streams it works on."""

    def __init__(
        self,
        *,
        journal: Journal,
        gateway: Gateway,
        programs: Programs,
        versions: Versions,
        max_value_bytes: int,
        chance: Chance,
        report: Callable[[str, float | None, float | None, str], None],
        step_by_step: bool = False,
    ) -> None:
        """`report` is called with job, done, total and message; `step_by_step` ends executions after each effect."""
        self.journal = journal
        self._services = JobServices(
            journal=journal,
            gateway=gateway,
            programs=programs,
            versions=versions,
            max_value_bytes=max_value_bytes,
            chance=chance,
            report=report,
            step_by_step=step_by_step,
        )

    def take(self, lease: Lease) -> JobExecution:
        """An execution of a job that was just leased."""
        return JobExecution(self._services, lease)
