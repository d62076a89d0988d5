"""Schedules: jobs that start by the clock, once for each time, whatever process dies meanwhile.

    schedule/NAME        what it is: revisions, pauses; its head says when it is due, and who holds it
    schedule/NAME/DAY    the outcome of each time of a day (UTC); closed when the next day begins

A pass over a schedule that is due holds its lease, and goes so:

    1  read both streams: the next time stands in the newest event, and is never computed again
    2  start the job, whose identifier follows from schedule, revision and time
    3  record the firing with the next time, and give the lease up: one write over both streams

| a process dies | then |
|---|---|
| before 2 | the lease lapses, or the dead owner is noticed; the next holder meets the same time |
| between 2 and 3 | the next holder finds the job by its identifier, and does 3 |
| after 3 | nothing is left to do |

A process that froze and lost its lease meanwhile meets the same identifier in 2, and is refused in 3. Commands that
change a schedule hold its lease, too; a job that a dead process started is recorded before they change anything.
"""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun, kinds_of

CAPABILITIES: Final = (
    Capability(
        name="schedules",
        about="Start jobs by the clock: cron expressions, intervals, zones.",
        settings="remit.parts.schedules.settings:SchedulesSettings",
        nouns=(
            Noun("schedules", "remit.parts.schedules.noun:Schedules", "remit.parts.schedules.wiring:open_schedules"),
        ),
        kinds=kinds_of(
            "remit.parts.schedules.kinds",
            "schedule",
            "changed removed paused resumed day_began run_asked fired skipped waited",
        ),
        queues=("schedule",),
        works="remit.parts.schedules.wiring:work_on_schedules",
        commands=(
            Command(
                word="schedule",
                section="Run",
                about="Start jobs by the clock, and see when.",
                command="remit.parts.schedules.commands:command",
            ),
        ),
        pages="remit.parts.schedules.pages:PAGES",
        checks="remit.parts.schedules.wiring:check_schedules",
        modules=("cronsim",),
        extra="schedules",
    ),
)
