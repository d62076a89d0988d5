"""Workers over HTTP: which processes run jobs, with which code."""

from __future__ import annotations

from typing import Final

from remit.api.route import ApiRequest, Route
from remit.service.workers import WorkerView


async def page(asked: ApiRequest) -> list[WorkerView]:
    """List the processes that run jobs now, the one that began last first."""
    return await asked.service.workers.views()


ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/workers",
        name="workers.page",
        scope="read",
        summary="List the processes that run jobs, with their code.",
        handler=page,
        answer=list[WorkerView],
    ),
)
