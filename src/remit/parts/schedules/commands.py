"""`remit schedule`: jobs that start by the clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import counted, one_line

if TYPE_CHECKING:
    from remit.parts.schedules.noun import Schedules, ScheduleView
    from remit.parts.schedules.schedule import Schedule

T = TypeVar("T")
COMMANDS: Final[dict[str, LazyCommand]] = {
    "add": LazyCommand("Commands", "Add a schedule, or change it."),
    "list": LazyCommand("Commands", "List the schedules."),
    "show": LazyCommand("Commands", "Show a schedule, and the outcome of each time."),
    "next": LazyCommand("Commands", "Say when a schedule comes."),
    "pause": LazyCommand("Commands", "Pause a schedule."),
    "resume": LazyCommand("Commands", "Let a schedule go on."),
    "run": LazyCommand("Commands", "Start a job for now, or for times of the past."),
    "rm": LazyCommand("Commands", "Remove a schedule."),
}
_DURATION: Final = "Such as 30s, 90m or 1d."


@click.group("schedule", cls=LazyGroup, package="remit.parts.schedules.commands", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Start jobs by the clock, and see when.

    `remit worker` and `remit serve` start them. Schedules stand in remit.toml ([[schedules]]) and in @recipe, too.
    """
    show_help(context)


def _session(state: CommandState, use: Callable[[Schedules], Awaitable[T]], *, creates: bool = False, **how: Any) -> T:
    """Open the journal or the server, use its schedules, close it."""
    return state.ask(lambda remit: use(remit.service.schedules), creates=creates, **{"code": "unused", **how})


@command.command("add")
@click.argument("name")
@click.argument("recipe")
@click.option("--cron", metavar="EXPRESSION", default="", help="Minute, hour, day, month, weekday; or @daily and such.")
@click.option("--every", metavar="DURATION", default="", help=f"Instead of --cron, an interval. {_DURATION}")
@click.option("--zone", metavar="ZONE", default="UTC", help="The zone of --cron, such as Europe/Berlin. Default: UTC.")
@click.option("--input", "arguments", metavar="JSON|@FILE", default="{}", help="The recipe's arguments.")
@click.option(
    "--overlap",
    type=click.Choice(["skip", "queue", "allow", "replace"]),
    default="skip",
    help="While its last job still runs. Default: skip.",
)
@click.option(
    "--catch-up",
    type=click.Choice(["latest", "none", "all"]),
    default="latest",
    help="Of the times that nothing worked at. Default: latest.",
)
@click.option("--catch-up-window", metavar="DURATION", default="1d", help="No times older than that. Default: 1d.")
@click.option("--jitter", metavar="DURATION", default="", help=f"Start up to so much later. {_DURATION}")
@click.option("--pause-on-failure", metavar="N", default=0, help="Pause after N failures in a row. Default: 0, never.")
@click.option("--label", "labels", multiple=True, metavar="NAME=TEXT", help="A label of its jobs; repeatable.")
@click.option("--priority", metavar="N", default=0, help="The priority of its jobs. Default: 0.")
@click.option("--replace", is_flag=True, help="Change the schedule of this name.")
@json_option("the schedule")
@pass_state
def add_command(
    state: CommandState, /, name: str, recipe: str, arguments: str, labels: tuple[str, ...], replace: bool, **rest: Any
) -> int:
    """Add a schedule, or change it.

    Its jobs run RECIPE in your name. A time that the clock skips in spring comes at the end of the gap; one that comes
    twice in autumn comes once.

    \b
    remit schedule add nightly refunds --cron "30 2 * * *" --zone Europe/Berlin
    remit schedule add poll inbox --every 15m --overlap queue
    """  # noqa: D301 - click reads the backspace: these lines stay as they are
    from remit.cli.values import json_object, pairs
    from remit.parts.schedules.schedule import Schedule

    schedule = Schedule(
        name=name, recipe=recipe, input=json_object(arguments, "--input"), labels=pairs(labels, "--label"), **rest
    )

    async def added(schedules: Schedules) -> ScheduleView:
        return await (schedules.replace(name, schedule) if replace else schedules.add(schedule))

    return state.show(_session(state, added, code="needed", writes=True, creates=True), _print_one)


@command.command("list")
@json_option("the schedules")
@pass_state
def list_command(state: CommandState) -> int:
    """List the schedules."""
    rows: list[ScheduleView] = _session(state, lambda schedules: schedules.rows())
    return state.listing(rows, _print, "there is no schedule; add one: remit schedule add")


def _print(state: CommandState, rows: list[ScheduleView]) -> None:
    from remit.cli.tables import TableColumn, table

    columns = ("STATE", "SCHEDULE", "RECIPE", "WHEN", "NEXT", TableColumn("LAST, OR WHY NOT", whole=False))
    cells = [
        (row.state, row.schedule, row.recipe, row.when, _local(row.next, row.zone), row.reason or _last(row))
        for row in rows
    ]
    table(state.output.out, columns, cells)


def _last(row: ScheduleView) -> str:
    occurrence = next(iter(row.last), None)
    return "" if occurrence is None else f"{occurrence.what} {occurrence.job or occurrence.why}"


@command.command("show")
@click.argument("schedule")
@json_option("the schedule")
@pass_state
def show_command(state: CommandState, schedule: str) -> int:
    """Show a schedule, and the outcome of each time."""
    return state.show(_session(state, lambda schedules: schedules.view(schedule)), _print_whole)


def _print_one(state: CommandState, row: ScheduleView) -> None:
    out = state.output.out
    coming = f"next {_local(row.next, row.zone)}" if row.next is not None else row.reason
    out.line(one_line(f"{row.schedule}  {row.recipe}  {row.when}  {row.state}  {coming}"))


def _print_whole(state: CommandState, row: ScheduleView) -> None:
    from remit.cli.tables import TableColumn, fields, table

    _print_one(state, row)
    spec: Schedule = row.spec
    fields(
        state.output.out,
        [
            ("paused by" if row.state == "paused" else "made by", row.by),
            ("revision", f"{row.revision}, {row.place or row.source}"),
            ("starts at", _local(row.due_at, row.zone) if row.due_at != row.next else ""),
            ("overlap", spec.overlap),
            ("catch up", f"{spec.catch_up}, {spec.catch_up_window} at most"),
            ("failures", str(row.failures) if row.failures and row.state != "paused" else ""),
        ],
    )
    cells = [
        (
            _local(occurrence.at, row.zone),
            occurrence.what,
            occurrence.job or occurrence.why,
            str(occurrence.missed or ""),
            occurrence.reason,
        )
        for occurrence in row.last
    ]
    table(
        state.output.out, ("TIME", "WHAT", "JOB, OR WHY", "MISSED", TableColumn("REASON", whole=False)), cells, indent=2
    )


@command.command("next")
@click.argument("schedule")
@click.option("--from", "since", metavar="TIME", help="Times from then on; default: now. A date is one of its zone.")
@click.option("-n", "count", metavar="N", default=10, type=click.IntRange(1, 1_000), help="So many. Default: 10.")
@json_option("the times, in microseconds")
@pass_state
def next_command(state: CommandState, schedule: str, since: str | None, count: int) -> int:
    """Say when a schedule comes."""

    async def comes(schedules: Schedules) -> tuple[str, list[int]]:
        zone = (await schedules.view(schedule)).zone
        start = _moment(since, "--from", zone) if since else 0
        return zone, await schedules.next(schedule, since=start, count=count)

    zone, times = _session(state, comes)

    def lines(state: CommandState, times: list[int]) -> None:
        for at in times:
            state.output.out.line(_local(at, zone))

    return state.listing(times, lines, "no time comes")


@command.command("pause")
@click.argument("schedule")
@click.option("--reason", metavar="TEXT", default="", help="Why, for the record.")
@json_option("the schedule")
@pass_state
def pause_command(state: CommandState, schedule: str, reason: str) -> int:
    """Pause a schedule: nothing starts by it until someone resumes it."""
    view = _session(state, lambda schedules: schedules.pause(schedule, reason=reason), writes=True)
    return state.done(view, f"{schedule} pauses")


@command.command("resume")
@click.argument("schedule")
@json_option("the schedule")
@pass_state
def resume_command(state: CommandState, schedule: str) -> int:
    """Let a schedule go on from now; the times of its pause are passed over."""
    return state.show(_session(state, lambda schedules: schedules.resume(schedule), writes=True), _print_one)


@command.command("run")
@click.argument("schedule")
@click.option("--from", "since", metavar="TIME", help="Times from then on. A date is one of its zone.")
@click.option("--to", "until", metavar="TIME", help="Times before then; default: now.")
@json_option("the jobs")
@pass_state
def run_command(state: CommandState, schedule: str, since: str | None, until: str | None) -> int:
    """Start a job for now, or for times of the past.

    A time that has its job already gets no second one: what was broken off can be run again.
    """
    if until and not since:
        raise click.UsageError("--to needs --from.")

    async def started(schedules: Schedules) -> Any:
        zone = (await schedules.view(schedule)).zone
        start = _moment(since, "--from", zone) if since else None
        return await schedules.run(schedule, since=start, until=_moment(until, "--to", zone) if until else None)

    session = _session(state, started, code="needed", writes=True)

    def lines(state: CommandState, _answer: Any) -> None:
        for job in session.jobs:
            state.output.out.line(job)
        state.note(f"{counted(len(session.jobs), 'job')} started, {session.there} were there")

    return state.show(session, lines)


@command.command("rm")
@click.argument("schedule")
@json_option("nothing")
@pass_state
def rm_command(state: CommandState, schedule: str) -> int:
    """Remove a schedule; its record and its jobs stay."""
    _session(state, lambda schedules: schedules.remove(schedule), writes=True)
    return state.done(None, f"{schedule} is removed")


def _moment(text: str, option: str, zone: str) -> int:
    """Return a moment in microseconds: without an offset, one of a zone. Raise UsageError."""
    from zoneinfo import ZoneInfo

    from remit.cli.values import moment_us
    from remit.clock import SECOND, SystemClock

    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        return moment_us(text, option, SystemClock().now())
    return round((local if local.tzinfo else local.replace(tzinfo=ZoneInfo(zone))).timestamp() * SECOND)


def _local(micros: int | None, zone: str) -> str:
    """Return an instant as a zone's clocks show it; nothing for none."""
    from zoneinfo import ZoneInfo

    from remit.clock import SECOND

    if micros is None:
        return ""
    return datetime.fromtimestamp(micros / SECOND, ZoneInfo(zone)).isoformat(sep=" ", timespec="seconds")
