"""The page of the schedules: when which job starts by itself, and the outcome of each time."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from remit.pages.page import Page, PageRequest, PageView, See
from remit.parts.schedules.noun import ScheduleView


class SchedulesPage(PageView, frozen=True, kw_only=True):
    """Page of all schedules."""

    template: ClassVar[str] = "schedules.html"
    rows: tuple[ScheduleView, ...]
    calls: bool
    """Whether the person may start their jobs."""
    decides: bool
    """Whether the person may pause them."""


class ScheduleForm(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done with a schedule."""

    schedule: str
    act: Literal["pause", "resume"]
    reason: str = ""


class RunForm(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule of which a job is to start now."""

    schedule: str


async def schedules(request: PageRequest) -> SchedulesPage:
    """Show them."""
    rows: list[ScheduleView] = await request.service.schedules.rows()
    access = request.access
    return SchedulesPage(
        title="Schedules",
        rows=tuple(rows),
        calls=access.allows("call") and not access.tools,
        decides=access.allows("decide"),
    )


async def change(request: PageRequest) -> See:
    """Pause a schedule, or let it go on. Raises NotFoundError."""
    noun, form = request.service.schedules, request.form
    if form.act == "pause":
        await noun.pause(form.schedule, reason=form.reason, by=request.principal)
    else:
        await noun.resume(form.schedule, by=request.principal)
    return See("/schedules")


async def run(request: PageRequest) -> See:
    """Start a job of a schedule now. Raises NotFoundError."""
    request.access.require_all_tools("the schedule")
    started = await request.service.schedules.run(request.form.schedule, by=request.principal)
    return See(f"/jobs/{started.jobs[0]}")


PAGES: Final = (
    Page(
        path="/schedules",
        scope="read",
        handler=schedules,
        name="Schedules",
        key="d",
        under="What runs where?",
        about="jobs that start by the clock, and when",
        live="heads",
    ),
    Page(path="/schedules/change", scope="decide", handler=change, form=ScheduleForm),
    Page(path="/schedules/run", scope="call", handler=run, form=RunForm),
)
