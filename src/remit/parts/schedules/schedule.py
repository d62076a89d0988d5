"""A schedule: what `[[schedules]]` in remit.toml, `@recipe(schedule=…)` or a request say, checked."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import SettingsError, UsageError
from remit.ids import encode
from remit.jobs.plans.problem import EXPECTED, parse_duration
from remit.parts.schedules.settings import SchedulesSettings
from remit.parts.schedules.times import Times
from remit.regex import regex
from remit.settings.parts import settings_of
from remit.settings.section import converted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remit.jobs.recipe import Recipe
    from remit.settings import Settings

_NAME: Final = regex(r"[a-z0-9][a-z0-9._-]{0,63}")
_MOST: Final = 8_000
"""Bytes of a schedule as it is recorded."""
Overlap = Literal["skip", "queue", "allow", "replace"]
CatchUp = Literal["latest", "none", "all"]


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """When which job starts by itself."""

    name: str
    """Lower-case letters, digits, `.`, `_` and `-`."""
    recipe: str
    """The recipe that runs."""
    cron: str = ""
    """Minute, hour, day, month, weekday, as for cron; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`."""
    every: str = ""
    """An interval such as `90m`, counted from 1970 in UTC; instead of `cron`."""
    zone: str = "UTC"
    """The zone of `cron`, such as `Europe/Berlin`."""
    input: dict[str, Any] = {}
    """The arguments of the recipe."""
    overlap: Overlap = "skip"
    """Where its last job still runs: pass the time over, let it wait until that ends (one does), start beside it, or
    ask that one to stop and start."""
    catch_up: CatchUp = "latest"
    """The times that passed while nothing worked for which a job starts: the newest, none, or every one, after the
    job before it unless `overlap` starts them beside it."""
    catch_up_window: str = "1d"
    """The age from which a time is passed over all the same."""
    jitter: str = ""
    """Start up to so much later, each time by another part of it that follows from name and time."""
    pause_on_failure: int = 0
    """Pause once so many of its jobs failed in a row; 0: never."""
    labels: dict[str, str] = {}
    """Labels of its jobs, beside `schedule`."""
    priority: int = 0
    """Priority of its jobs."""
    principal: str = ""
    """The principal whose jobs they are; empty: `app.principal`."""

    @property
    def times(self) -> Times:
        """Return its times. Raise as `Times` does."""
        return Times(self.name, self.cron, self.every, self.zone, self.jitter)

    @property
    def window(self) -> int:
        """Return the age from which a time is passed over, in microseconds."""
        return (parse_duration(self.catch_up_window) or 0) * 1_000

    @property
    def words(self) -> str:
        """Return when, for people."""
        when = self.cron or f"every {self.every}"
        return f"{when} {self.zone}" if self.zone != "UTC" and self.cron else when

    @property
    def digest(self) -> str:
        """Return the digest by which another wording of the same is the same."""
        return digest(msgspec.to_builtins(self))

    def check(self) -> None:
        """Raise UsageError (SCHEDULE_INVALID), or SettingsError where a package is missing."""
        _ = self.times
        if not _NAME.fullmatch(self.name):
            raise _invalid(f"{self.name!r} is no name of a schedule", "Use lower-case letters, digits, '.', '_', '-'.")
        if parse_duration(self.catch_up_window) is None:
            raise _invalid(f"catch_up_window must be {EXPECTED}", "Write, for example, 1d.")
        if self.pause_on_failure < 0:
            raise _invalid("pause_on_failure must be 0 or more", "Write 0 for never.")
        if any(name.startswith("remit.") or name == "schedule" for name in self.labels):
            raise _invalid("labels must be your own", "Leave out schedule, and what begins with remit.")
        if len(msgspec.json.encode(self)) > _MOST:
            raise _invalid(f"a schedule takes {_MOST} bytes at most", "Let its recipe read what is large.")


def job_of(name: str, revision: int, at: int) -> str:
    """Return the identifier of the job of a time, in whatever process."""
    hashed = sha256(f"schedule\0{name}\0{revision}\0{at}".encode()).digest()[:16]
    return f"job_{encode(int.from_bytes(hashed, 'big'))}"


def read_tables(settings: Settings) -> dict[str, Schedule]:
    """Return the schedules of remit.toml. Raise SettingsError that names file, number and key."""
    source = settings.sources.get("schedules.entries", "schedules")
    tables = settings_of(settings, "schedules", SchedulesSettings).entries
    return _each((table, f"{source}: schedules number {number}") for number, table in enumerate(tables, 1))


def read_recipes(recipes: Iterable[Recipe[..., Any]]) -> dict[str, Schedule]:
    """Return the schedules of `@recipe(schedule=…)`. Raise SettingsError."""
    return _each(
        (
            {"name": recipe.name, "recipe": recipe.name, **_table(recipe.schedule)},
            f"@recipe({recipe.name!r}, schedule=…)",
        )
        for recipe in recipes
        if recipe.schedule
    )


def _table(written: str | Mapping[str, Any]) -> Mapping[str, Any]:
    return {"cron": written} if isinstance(written, str) else written


def _each(tables: Iterable[tuple[Mapping[str, Any], str]]) -> dict[str, Schedule]:
    schedules: dict[str, Schedule] = {}
    for table, where in tables:
        schedule = converted(table, Schedule, where)
        try:
            schedule.check()
        except UsageError as error:
            raise SettingsError(f"{where}: {error.message}", remedy=error.remedy) from error
        if schedule.name in schedules:
            raise SettingsError(
                f"{where}: another schedule is called {schedule.name}", remedy="Give each its own name."
            )
        schedules[schedule.name] = schedule
    return schedules


def _invalid(reason: str, remedy: str) -> UsageError:
    return UsageError(reason, code=Code.SCHEDULE_INVALID, remedy=remedy)
