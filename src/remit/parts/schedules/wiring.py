"""Schedules beside a worker or a server, which start what is due, and in `remit doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from remit.capability import Check, Look, Upkeep
from remit.clock import isoformat
from remit.errors import JournalError, RemitError, SettingsError
from remit.journal.event import HeadQuery
from remit.parts.schedules.changes import Declared
from remit.parts.schedules.noun import Schedules, ScheduleView
from remit.parts.schedules.schedule import read_recipes, read_tables
from remit.parts.schedules.state import KIND
from remit.parts.schedules.work import LATE, ScheduleWork

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.engines.port import Engine
    from remit.jobs.recipe import Recipe
    from remit.service.noun_means import NounOpening
    from remit.service.service import Service
    from remit.settings import Settings

PART: Final = "schedules"
_PASSED: Final = ("missed", "overlap")
"""Reasons why a time has no job that are no one's fault."""
_AT_ONCE: Final = 16
"""Schedules that one process starts jobs of at the same time."""
_LAST_S: Final = 5.0
_LOOK_S: Final = 1.0
"""While there is no schedule, the journal is looked at for one this often at most."""


def schedules_of(service: Service) -> Schedules:
    """The noun, in its type."""
    return cast("Schedules", service.schedules)


def open_schedules(opening: NounOpening) -> Schedules:
    """Return the schedules of a journal."""
    return Schedules(opening.parts, opening.service.jobs, opening.principal)


def declared(settings: Settings, recipes: Iterable[Recipe[..., Any]]) -> dict[str, Declared]:
    """Return what remit.toml and recipes declare. Raise SettingsError."""
    of_file, of_recipes = read_tables(settings), read_recipes(recipes)
    if both := sorted(of_file.keys() & of_recipes.keys()):
        reason = f"the schedule {both[0]} stands in {file_of(settings)} and in @recipe"
        raise SettingsError(reason, remedy="Take it out of one of them.")
    file = file_of(settings)
    return {
        **{name: Declared(schedule, "settings", file) for name, schedule in of_file.items()},
        **{name: Declared(schedule, "recipe", "") for name, schedule in of_recipes.items()},
    }


def file_of(settings: Settings) -> str:
    """Return the place where the settings say which schedules there are."""
    return settings.written.path or str(settings.folder)


def work_on_schedules(remit: Remit, _stop: asyncio.Event, _role: str) -> Upkeep:
    """Return what starts the jobs of schedules. Raise SettingsError for one that cannot be understood."""
    schedules = declared(remit.settings, remit.runtime.programs.recipes.all())
    work = ScheduleWork(remit.runtime.journal, remit.service.jobs, remit.runtime.programs.recipes.names)
    return Upkeep(PART, partial(_run, remit, schedules, work))


async def _run(
    remit: Remit, schedules: dict[str, Declared], work: ScheduleWork, _tell: Callable[[str], object]
) -> None:
    """Let what is declared hold, then start what is due until cancelled. Raise JournalError."""
    changes = schedules_of(remit.service).changes
    await changes.sync(schedules, file_of(remit.settings), set(work.routes))
    mark = 0
    while not await work.journal.heads(HeadQuery(kind=KIND, limit=1)):
        mark = await work.journal.heads_changed(mark)
        await work.journal.clock.sleep(_LOOK_S)
    engine: Engine = remit.runtime.engine_for(work, concurrency=_AT_ONCE)
    try:
        engine.start()
        await engine.stopped()
    finally:
        await engine.drain(_LAST_S)
        await engine.stop()


async def check_schedules(look: Look) -> list[Check]:
    """One check for each schedule that starts no job, or is not what remit.toml says; else one for all."""
    try:
        tables = read_tables(look.settings)
        async with look.open() as remit:
            rows, now = await schedules_of(remit.service).rows(), remit.runtime.journal.clock.now()
    except JournalError:  # which has a check of its own
        return []
    except RemitError as error:
        return [Check.failed(PART, error)]
    checks, by_name = list[Check](), {row.schedule: row for row in rows}
    checks += [Check(PART, "warn", f"{row.schedule} {words}", then) for row in rows for words, then in _idle(row, now)]
    for name, table in tables.items():
        known = by_name.get(name)
        if known is not None and known.spec != table:
            reason = f"{name} is not what {file_of(look.settings)} says: {known.place or known.source} changed it last"
            checks.append(
                Check(PART, "warn", reason, "Start a worker with this file, or give all of them the same one.")
            )
    counts = f"{len(rows)} schedules" if rows or tables else ""
    return checks or ([Check(PART, "ok", counts)] if counts else [])


def _idle(row: ScheduleView, now: int) -> list[tuple[str, str]]:
    """Return why a schedule starts no job, and what to do; nothing where it does, or a person paused it."""
    if row.state == "paused":
        return [] if row.by else [(f"pauses: {row.reason}", f"Look why, then: remit schedule resume {row.schedule}")]
    if row.state == "waits":
        return [(f"waits: {row.reason}", "Make room for its job.")] if row.last[0].why not in _PASSED else []
    if row.due_at is not None and now - row.due_at > LATE:
        reason = f"is due since {isoformat(row.due_at)}, and no process that has the recipe {row.recipe} starts its job"
        return [(reason, "Start `remit worker` with it in its modules.")]
    if row.last and row.last[0].what == "skipped" and row.last[0].reason and row.last[0].why not in _PASSED:
        newest = row.last[0]
        return [
            (f"had no job at {isoformat(newest.at)}: {newest.why}: {newest.reason}", "Correct its recipe or input.")
        ]
    return []
