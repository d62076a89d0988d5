"""`remit jobs`: a list of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.record.states import STATES

if TYPE_CHECKING:
    from remit.cli.joblist import Wanted
    from remit.record.views import JobRow


@click.command("jobs")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Only jobs in this state; repeatable."
)
@click.option("--recipe", metavar="NAME", shell_complete=complete.recipes, help="Only jobs of this recipe or plan.")
@click.option("--since", metavar="AGE", help="Only jobs created in this time: 90s, 30m, 12h or 7d.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only jobs with this label; repeatable.")
@click.option("--text", default="", metavar="TEXT", help="Only jobs with this text in title, input, result or error.")
@click.option("--principal", default="", metavar="NAME", help="Only jobs that this principal asked for.")
@click.option("--limit", metavar="N", default=20, type=click.IntRange(1, 10_000), help="Show at most N. Default: 20.")
@click.option("-w", "--watch", is_flag=True, help="Keep the list up to date until Ctrl-C.")
@json_option("the jobs; with --watch, each change on a line")
@pass_state
def command(
    state: State,
    states: tuple[str, ...],
    recipe: str | None,
    since: str | None,
    labels: tuple[str, ...],
    text: str,
    principal: str,
    limit: int,
    watch: bool,
) -> int:
    """List jobs, newest first.

    A running job whose process is gone is shown as `stopped`. A job is `stuck` if the code on this machine cannot
    continue it. `remit resume` continues both. At a terminal only the end of each id is shown; every command accepts
    it.
    """
    from remit.cli.joblist import Wanted
    from remit.cli.running import run_async
    from remit.cli.values import pairs, seconds
    from remit.clock import SECOND, SystemClock

    filed = pairs(labels, "--label") | ({"remit.name": recipe} if recipe else {})
    begin = SystemClock().now() - seconds(since, "--since") * SECOND if since else 0
    wanted = Wanted(states=states, labels=filed, text=text, principal=principal, since=begin, limit=limit)
    if watch:
        return run_async(lambda _stop: _watch(state, wanted))
    rows, url = run_async(lambda _stop: _look(state, wanted))
    if state.as_json:
        state.output.json(rows)
    elif rows:
        from remit.cli.joblist import show_jobs

        show_jobs(state.output.out, rows)
    else:
        # A file that is not there yet is read as one in memory.
        place = url if state.server else state.settings().journal.file or url
        narrowed = states or labels or recipe or since or text or principal
        state.note("no such jobs" if narrowed else f"no jobs in {place}")
    return exit_codes.OK


async def _look(state: State, wanted: Wanted) -> tuple[list[JobRow], str]:
    from remit.cli.joblist import listed

    async with state.open(code="unused") as remit:
        return await listed(remit, wanted), remit.url


async def _watch(state: State, wanted: Wanted) -> int:
    from remit.cli.joblist import watch

    async with state.open(code="unused") as remit:
        await watch(state, remit, wanted)
    return exit_codes.OK
