"""The section `[[schedules]]`."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from remit.settings.section import About, Section, Tables


def _claims(value: Tables) -> Iterator[str]:
    for table in value:
        yield f"start {table.get('recipe')} by itself: {table.get('cron') or table.get('every')}"


class SchedulesSettings(Section, frozen=True):
    """Jobs that start by the clock: each `[[schedules]]` table is one schedule."""

    array: ClassVar[str] = "entries"

    entries: Annotated[
        Tables,
        About(
            "The schedules, one `[[schedules]]` table each; [schedules.md](schedules.md) explains their keys. "
            "A JSON array in the environment.",
            env=("REMIT_SCHEDULES",),
            entry="remit.parts.schedules.schedule:Schedule",
            claims=_claims,
        ),
    ] = ()
