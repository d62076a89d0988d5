"""Workers: the processes that run jobs, and their code; jobs that wait for one, timers and schedules due next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

import msgspec

from remit.pages.page import Page, PageRequest, PageView
from remit.record.views import JobRow
from remit.service.workers import DueView, WorkerView

_LOOKED_AT: Final = 1_000
"""Jobs of a state that are looked at, the newest ones."""
_TIMERS: Final = 10


class WaitingJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that wait for a worker, by what that has to have."""

    route: str
    """A recipe, `recipe@version` or `tool:NAME`; empty: any worker can take them."""
    number: int
    oldest: JobRow
    since: int
    """When the oldest of them was due."""
    lack: str
    """Why no worker takes them; empty: one can."""


class WorkersPage(PageView, frozen=True, kw_only=True):
    """Those that work now, the one that began last first."""

    template: ClassVar[str] = "workers.html"
    workers: tuple[WorkerView, ...]
    versions: dict[str, int]
    """The number of versions of a recipe they run, by its name."""
    queues: tuple[WaitingJobs, ...]
    """Those that wait longest first."""
    timers: tuple[JobRow, ...]
    """Jobs whose timer ends next."""
    due: tuple[DueView, ...]
    """Schedules, and whatever else of parts begins by the clock, in their order."""


async def workers(request: PageRequest) -> WorkersPage:
    """Look who works."""
    views = await request.service.workers.views()
    every: dict[str, set[str]] = {}
    for worker in views:
        for name, version in worker.recipes.items():
            every.setdefault(name, set()).add(version)
    pending = await request.service.jobs.rows(("pending",), limit=_LOOKED_AT)
    waiting = await request.service.jobs.rows(("waiting",), limit=_LOOKED_AT)
    timed = sorted(
        (row for row in waiting if row.due_at is not None and not _asks(row)), key=lambda row: row.due_at or 0
    )
    return WorkersPage(
        title="Workers",
        workers=tuple(views),
        versions={name: len(all_) for name, all_ in every.items()},
        queues=queues_of((row for row in pending if _due(row) <= request.now), views),
        timers=tuple(timed[:_TIMERS]),
        due=tuple(await request.service.workers.due(_TIMERS)),
    )


def queues_of(due: Iterable[JobRow], workers: list[WorkerView]) -> tuple[WaitingJobs, ...]:
    """Return what waits for a worker, and why none takes it."""
    groups: dict[str, list[JobRow]] = {}
    for row in due:
        groups.setdefault(row.route, []).append(row)
    queues = []
    for route, rows in groups.items():
        oldest = min(rows, key=_due)
        lack = _lack(route, workers)
        queues.append(WaitingJobs(route=route, number=len(rows), oldest=oldest, since=_due(oldest), lack=lack))
    return tuple(sorted(queues, key=lambda queue: queue.since))


def _asks(row: JobRow) -> bool:
    """Return whether a job waits for an answer: the inbox says how long it may take."""
    return row.waiting_for.startswith("confirmation ")


def _due(row: JobRow) -> int:
    return row.due_at if row.due_at is not None else row.created_at


def _lack(route: str, workers: list[WorkerView]) -> str:
    """Say who lacks what; empty where someone can take it, or only the worker itself can tell."""
    recipe, _, version = route.partition("@")
    if not workers:
        return "No process runs jobs."
    if not route or route.startswith("tool:"):
        return f"Left by a worker that has no {route.removeprefix('tool:')}." if route else ""
    knowing = [worker for worker in workers if recipe in worker.recipes]
    if not knowing:
        return f"No worker knows the recipe {recipe}."
    if version and all(worker.recipes[recipe] != version for worker in knowing):
        others = ", ".join(f"{worker.words} has {worker.recipes[recipe]}" for worker in knowing)
        return f"It began with version {version}: {others}."
    return ""


PAGES: Final = (
    Page(
        path="/workers",
        scope="read",
        handler=workers,
        name="Workers",
        key="w",
        under="What runs where?",
        about="processes that run jobs, their code, what waits for one, timers and schedules due",
        live="heads",
    ),
)
