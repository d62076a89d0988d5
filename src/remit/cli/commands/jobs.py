"""Lists of what was done and taken: `remit jobs`, `remit sessions`, `remit usage` and `remit budgets`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.news import news_of
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.cli.tables import TableColumn, clock_time, moment, short_ids, table
from remit.cli.terminal import PagedLines
from remit.clock import SystemClock, age
from remit.errors import UsageError
from remit.journal.labels import Bound, conditions
from remit.record.states import STATES, about, is_in, recorded, shown_state

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.access import Opened
    from remit.cli.output import OutputChannel
    from remit.errors import JournalError
    from remit.record.usage import BudgetRow, By, UsageRow
    from remit.record.views import JobRow, SessionRow
    from remit.service.policy import PotView, RateView


@click.command("jobs")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Only jobs in this state; repeatable."
)
@click.option("--recipe", metavar="NAME", shell_complete=complete.recipes, help="Only jobs of this recipe or plan.")
@click.option("--since", metavar="AGE", help="Only jobs created in this time: 90s, 30m, 12h or 7d.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only jobs with this label, or as KEY>=100, KEY<2026-12-01T00:00Z; repeatable.",
)
@click.option("--text", default="", metavar="TEXT", help="Only jobs with this text in title, input, result or error.")
@click.option("--principal", default="", metavar="NAME", help="Only jobs that this principal asked for.")
@click.option("--limit", metavar="N", default=20, type=click.IntRange(1, 10_000), help="Show at most N. Default: 20.")
@click.option("-w", "--watch", is_flag=True, help="Keep the list up to date until Ctrl-C.")
@click.option("--csv", is_flag=True, help="Print comma-separated values, a column for each label.")
@json_option("the jobs; with --watch, each change on a line")
@pass_state
def command(
    state: CommandState,
    states: tuple[str, ...],
    recipe: str | None,
    since: str | None,
    labels: tuple[str, ...],
    text: str,
    principal: str,
    limit: int,
    watch: bool,
    csv: bool,
) -> int:
    """List jobs, newest first.

    A running job whose process is gone is shown as `stopped`. A job is `stuck` if the code on this machine cannot
    continue it. `remit resume` continues both. At a terminal only the end of each id is shown; every command accepts
    it.
    """
    from remit.cli.runner import run_async
    from remit.cli.values import since_us

    filed, bounds = conditions(labels)
    filed |= {"remit.name": recipe} if recipe else {}
    begin = since_us(since)
    wanted = JobSelection(
        states=states, labels=filed, bounds=bounds, text=text, principal=principal, since=begin, limit=limit
    )
    if csv and (watch or state.as_json):
        raise UsageError("--csv is one whole table", remedy="Leave out --json and --watch.")
    if watch:
        return run_async(lambda _stop: _watch(state, wanted))
    rows, url, retired = run_async(lambda _stop: _look(state, wanted))
    if state.as_json:
        state.output.json(rows)
    elif csv:
        from remit.record.job_table import job_table

        state.output.out.raw(job_table(rows).removesuffix("\n"))
    elif rows:
        show_jobs(state.output.out, rows)
    else:
        # A file that is not there yet is read as one in memory.
        place = url if state.server else state.settings().journal.file or url
        narrowed = states or labels or recipe or since or text or principal
        state.note("no such jobs" if narrowed else f"no jobs in {place}")
    if retired is not None:
        state.note(f"{retired}\n  {state.output.err.style('->', 'cyan')} {retired.remedy}")
    return exit_codes.OK


async def _look(state: CommandState, wanted: JobSelection) -> tuple[list[JobRow], str, JournalError | None]:
    """The jobs, where they are, and why no process runs them there, if none does."""
    async with state.open(code="unused") as remit:
        retired = None if state.server else await remit.service.workers.refusal()
        return await listed(remit, wanted), remit.url, retired


async def _watch(state: CommandState, wanted: JobSelection) -> int:
    async with state.open(code="unused") as remit:
        await watch(state, remit, wanted)
    return exit_codes.OK


_PAGE: Final = 500
_WIDE: Final = 110
"""Columns from which on there is room for the whole time."""
_AROUND: Final = 3
"""Lines of the terminal that are left to others."""
_REFRESH_S: Final = 2.0
"""Ages grow, and processes die, without an event."""
_SPACING_S: Final = 0.2


class JobSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs."""

    states: tuple[str, ...] = ()
    """As people see them; none: any."""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    bounds: tuple[Bound, ...] = ()
    """Conditions on the sizes of labels."""
    text: str = ""
    """Stands in what a JobSearch looks at."""
    principal: str = ""
    """The principal that asked for it."""
    since: int = 0
    """Created at this moment or later; microseconds since the Unix epoch."""
    limit: int = 20


async def listed(remit: Opened, wanted: JobSelection) -> list[JobRow]:
    """The newest jobs that are wanted, newest first."""
    jobs: list[JobRow] = []
    before: str | None = None
    if wanted.text or wanted.principal:
        return await _searched(remit, wanted)
    size = max(_PAGE, wanted.limit) if wanted.states else wanted.limit
    while len(jobs) < wanted.limit:
        page = await remit.service.jobs.rows(
            recorded(wanted.states),
            labels=dict(wanted.labels),
            bounds=wanted.bounds,
            limit=size,
            before=before,
            since=wanted.since,
        )
        jobs += [row for row in page if is_in(row, wanted.states)]
        if len(page) < size:
            break
        before = page[-1].job
    return jobs[: wanted.limit]


async def _searched(remit: Opened, wanted: JobSelection) -> list[JobRow]:
    from remit.record.search import JobSearch

    jobs: list[JobRow] = []
    before: str | None = ""
    while before is not None and len(jobs) < wanted.limit:
        page = await remit.service.jobs.search(
            JobSearch(
                states=recorded(wanted.states),
                labels=dict(wanted.labels),
                bounds=wanted.bounds,
                since=wanted.since,
                text=wanted.text,
                principal=wanted.principal,
                before=before,
                limit=_PAGE,
            )
        )
        jobs += [row for row in page.rows if is_in(row, wanted.states)]
        before = page.next
    return jobs[: wanted.limit]


def show_jobs(channel: OutputChannel, rows: Sequence[JobRow]) -> None:
    """Write them as a table."""
    wide = channel.width is None or channel.width >= _WIDE
    now = SystemClock().now()
    columns = (
        "JOB",
        TableColumn("STATE", states=True),
        TableColumn("CREATED" if wide else "AGE", style="dim"),
        TableColumn("NAME", whole=False),
        TableColumn("ABOUT", whole=False),
    )
    ids = short_ids(channel, [row.job for row in rows])
    times = [moment(row.created_at) if wide else age(now - row.created_at) for row in rows]
    lines = [
        (job, shown_state(row), time, row.name, about(row)) for job, row, time in zip(ids, rows, times, strict=True)
    ]
    table(channel, columns, lines)


async def watch(state: CommandState, remit: Opened, wanted: JobSelection) -> None:
    """Show them until the person stops it: drawn in place at a terminal, else a line for each change."""
    out = state.output.out
    drawn: _Drawn | _Told = _Drawn(out) if out.is_terminal and not state.as_json else _Told(state)
    async with news_of(remit, ()) as news:
        mark = await news.changed(0)
        while True:
            drawn.show(await listed(remit, wanted))
            out.flush()
            await news.clock.sleep(_SPACING_S)
            change = asyncio.create_task(news.changed(mark))
            try:
                await asyncio.wait({change, news.failed}, timeout=_REFRESH_S, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not change.done():
                    change.cancel()
                    await asyncio.wait({change})
            if news.failed.done():
                news.failed.result()
            mark = mark if change.cancelled() else change.result()


class _Drawn:
    """A table that is drawn over the one before."""

    def __init__(self, channel: OutputChannel) -> None:
        self._channel = channel
        self._lines = 0

    def show(self, rows: Sequence[JobRow]) -> None:
        from shutil import get_terminal_size

        page = PagedLines(self._channel)
        room = max(1, get_terminal_size().lines - _AROUND)
        show_jobs(page, rows[:room])
        if not rows:
            page.line("no such jobs")
        back = f"\x1b[{self._lines}F\x1b[J" if self._lines else ""
        self._channel.stream.write(back + "".join(f"{line}\n" for line in page.lines))
        self._lines = len(page.lines)


class _Told:
    """A line for each job that is new or has changed."""

    def __init__(self, state: CommandState) -> None:
        self._state = state
        self._known: dict[str, tuple[str, str]] = {}

    def show(self, rows: Sequence[JobRow]) -> None:
        for row in reversed(rows):
            now = (shown_state(row), about(row))
            if self._known.get(row.job) != now:
                self._known[row.job] = now
                self._tell(row, *now)

    def _tell(self, row: JobRow, shown: str, happening: str) -> None:
        if self._state.as_json:
            self._state.output.json(row)
        else:
            parts = (clock_time(row.updated_at), row.job, shown, row.name, one_line(happening))
            self._state.output.out.line("  ".join(filter(None, parts)))


@click.command("sessions")
@click.option("--limit", metavar="N", default=20, type=click.IntRange(1, 10_000), help="Show at most N. Default: 20.")
@json_option("the sessions")
@pass_state
def sessions(state: CommandState, limit: int) -> int:
    """List sessions: calls that no job made.

    Each connection of an MCP client is a session, and so is each program that calls tools itself. Newest first; `remit
    trace SESSION` shows what one of them did.
    """
    rows = state.ask(lambda remit: remit.service.sessions.rows(limit=limit), code="unused")
    return state.listing(rows, _print_sessions, "no sessions yet")


def _print_sessions(state: CommandState, rows: list[SessionRow]) -> None:
    from remit.cli.tables import TableColumn, moment, table

    columns = (
        "SESSION",
        TableColumn("BEGAN", style="dim"),
        TableColumn("LAST", style="dim"),
        TableColumn("WHO", whole=False),
    )
    lines = [(row.session, moment(row.created_at), moment(row.updated_at), row.title) for row in rows]
    table(state.output.out, columns, lines)


_BY = ("job", "principal", "model", "day")


@click.command("usage")
@click.option("--by", type=click.Choice(_BY), default="model", help="Group by this. Default: model.")
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(1, 36_500),
    default=30,
    help="Look back N days (UTC), today included. Default: 30.",
)
@json_option("the sums")
@pass_state
def usage(state: CommandState, by: By, days: int) -> int:
    """Show what models used: requests, tokens, dollars.

    Costs are estimates; what has no known price is not counted as 0. An answer that never arrived counts as the most it
    could have used.
    """
    from remit.clock import DAY

    rows = state.ask_here(
        lambda remit: remit.service.usage.rows(by, since=(remit.clock.now() // DAY - days + 1) * DAY), code="unused"
    )
    return state.listing(rows, partial(_print_usage, by), f"no model was used in the last {days} days")


def _print_usage(by: By, state: CommandState, rows: list[UsageRow]) -> None:
    from remit.cli.tables import table
    from remit.record.usage import priced

    columns = (by.upper(), "REQUESTS", "TOKENS", "US$")
    lines = [(row.name, str(row.calls), str(row.tokens), priced(row.cost, row.unpriced)) for row in rows]
    table(state.output.out, columns, lines)


@click.command("budgets")
@json_option("`budgets`, `pots` and `limits`, a list each")
@pass_state
def budgets(state: CommandState) -> int:
    """Show how full budgets, pots and limits are.

    Budgets are of models, with what is reserved for questions; pots of rules, limits of calls. See docs/budgets.md.
    """
    fills = state.ask_here(_fills, code="recorded")
    if any(fills.values()) or state.as_json:
        return state.show(fills, _print_fills)
    state.note("nothing is limited: models.budgets, policy.pots and limits of remit.toml do that")
    return exit_codes.OK


async def _fills(remit: Remit) -> dict[str, Sequence[BudgetRow | PotView | RateView]]:
    usage, policy = remit.service.usage, remit.service.policy
    rows = [*await usage.budgets(), *await usage.of_today(remit.clock.now())]
    return {"budgets": rows, "pots": await policy.pots(), "limits": await policy.rates()}


def _print_fills(state: CommandState, fills: Mapping[str, Sequence[Any]]) -> None:
    lines = [("budget", row.budget, row.share, f"{row.words} ({row.percent:g} %)") for row in fills["budgets"]]
    lines += [("pot", pot.pot, "", pot.words) for pot in fills["pots"]]
    for rate in fills["limits"]:
        percent = f" ({round(rate.percent, 1):g} %)" if rate.percent is not None else ""
        lines.append(("limit", rate.limit, "", f"{rate.words}{percent}"))
    table(state.output.out, ("KIND", "NAME", "OF", TableColumn("TAKEN", whole=False)), lines)
