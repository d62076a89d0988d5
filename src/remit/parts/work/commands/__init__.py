"""`remit work`: hand issues to executors, and take back what is proved."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import LazyCommand, LazyGroup, show_help

_ISSUES: Final = "remit.parts.work.commands.issue"
_RUNS: Final = "remit.parts.work.commands.run"
COMMANDS: Final[dict[str, LazyCommand]] = {
    "init": LazyCommand("Issues", "Write a commented workflow.toml and an issue template.", f"{_ISSUES}:init"),
    "issue": LazyCommand("Issues", "Open an issue that is kept here.", f"{_ISSUES}:issue"),
    "decide": LazyCommand("Issues", "Put an issue into a state: done, todo, blocked.", f"{_ISSUES}:decide"),
    "serve": LazyCommand("Runs", "Hand out issues by their labels, and work on them until Ctrl-C.", f"{_RUNS}:serve"),
    "run": LazyCommand("Runs", "Hand an issue to an executor, and see it through.", f"{_RUNS}:run"),
    "switch": LazyCommand("Runs", "Put another executor in the place of the active one.", f"{_RUNS}:switch"),
    "stop": LazyCommand("Runs", "Stop the active run of an issue.", f"{_RUNS}:stop"),
    "result": LazyCommand("Runs", "Hand in the result of a run, or adopt one that came too late.", f"{_RUNS}:hand_in"),
    "write": LazyCommand("Runs", "Write the comments that are queued for an issue.", f"{_ISSUES}:write"),
    "board": LazyCommand("Look", "List the issues that are worked on.", f"{_ISSUES}:board"),
    "show": LazyCommand("Look", "Show an issue's runs, results and comments.", f"{_ISSUES}:show"),
    "late": LazyCommand("Look", "Show the results that came when their run was no longer active.", f"{_RUNS}:late"),
    "log": LazyCommand("Look", "Print what a run's program wrote.", f"{_RUNS}:log"),
}


@click.group("work", cls=LazyGroup, package="remit.parts.work.commands", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Hand issues to coding agents, scripts and people, and take back only what is proved.

    A run works in a git worktree of its own. Remit commits what it left, runs the acceptance commands, and writes one
    comment to the issue. Of two runs only the active one counts.
    """
    show_help(context)
