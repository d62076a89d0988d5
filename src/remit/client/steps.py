"""Steps of jobs behind a server."""

from __future__ import annotations

from typing import Any, Literal

from remit.api.routes.steps import StepDecision
from remit.client.connection import Connection
from remit.client.person import only_oneself
from remit.codes import Code
from remit.service.values import encoded
from remit.service.views import StepView


class RemoteSteps:
    """The steps of a server's jobs; see StepsPort."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
        self._connection = connection

    async def view(self, job: str, step: str) -> StepView:
        """One step, whole."""
        view: StepView = await self._connection.ask("jobs.step", job, step)
        return view

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
        """Resolve a step whose outcome is unknown; `replace` corrects the decision that stands."""
        only_oneself(by)
        encoded(value, Code.INVALID_INPUT)
        body = StepDecision(decision=decision, value=value, attempt=attempt, reason=reason, replace=replace)
        await self._connection.ask("steps.decide", job, step, body=body)
