"""`remit notify`: who is told of questions and of jobs that cannot go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line

if TYPE_CHECKING:
    from remit.parts.notify.notifications import TargetAnswer, TargetView


COMMANDS: Final[dict[str, LazyCommand]] = {
    "list": LazyCommand("Commands", "List the targets and the state of their last messages."),
    "test": LazyCommand("Commands", "Send a test message, and show what came back."),
}


_NO_TARGET: Final = "no one is told: remit.toml has no [[notify]] table"


@click.group("notify", cls=LazyGroup, package="remit.parts.notify.commands", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """See who is told what waits or failed, and test it.

    The targets are the [[notify]] tables of remit.toml. `remit worker` and `remit serve` send the messages.
    """
    show_help(context)


@command.command("list")
@click.option(
    "--limit", metavar="N", default=5, type=click.IntRange(0, 1_000), help="Show N messages a target. Default: 5."
)
@json_option("the targets")
@pass_state
def list_command(state: CommandState, limit: int) -> int:
    """List the targets and the state of their last messages.

    A `waiting` message is due later, or is tried again; a `dropped` one was settled before it was sent; a `failed` one
    was given up after a day.
    """
    views: list[TargetView] = state.ask_here(
        lambda remit: remit.service.notifications.views(limit=limit), code="unused"
    )
    return state.listing(views, _print, _NO_TARGET)


def _print(state: CommandState, views: list[TargetView]) -> None:
    from remit.cli.tables import TableColumn, moment, table

    out = state.output.out
    for view in views:
        out.line(one_line(f"{view.target}: {view.where}"))
        when = f"{', '.join(view.on)}{f', after {view.after}' if view.after else ''}"
        counts = f"{view.sent} sent, {view.waiting} waiting ({view.failing} failing), {view.failed} failed"
        out.line(f"  {out.style(f'{when}; {counts}', 'dim')}")
        if view.deaf:
            out.line(one_line(f"  what people press is not known: {view.deaf}"))
        columns = (
            TableColumn("QUEUED", style="dim"),
            "EVENT",
            "ABOUT",
            "STATE",
            "TRIES",
            TableColumn("NEXT", style="dim"),
            TableColumn("SAID", whole=False),
        )
        due = [moment(row.due_at) if row.due_at is not None else "" for row in view.last]
        rows = [
            (moment(row.queued_at), row.event, row.about, row.state, str(row.attempts), next_at, row.said)
            for row, next_at in zip(view.last, due, strict=True)
        ]
        table(out, columns, rows, indent=2)


@command.command("test")
@click.argument("target", required=False, default="")
@json_option("what came back")
@pass_state
def test_command(state: CommandState, target: str) -> int:
    """Send a test message, and show what came back.

    Sends it at once, to TARGET or to every target, and records nothing. Exits with status 1 if a target fails.
    """
    answers: list[TargetAnswer] = state.ask_here(
        lambda remit: remit.service.notifications.test(target), code="unused", writes=True, blank=True
    )
    state.listing(answers, _print_answers, _NO_TARGET)
    return exit_codes.OK if all(answer.ok for answer in answers) else exit_codes.ERROR


def _print_answers(state: CommandState, answers: list[TargetAnswer]) -> None:

    out = state.output.out
    for answer in answers:
        verdict = "ok" if answer.ok else "fail"
        out.line(f"{out.style(f'{verdict:<4}', verdict)}  {one_line(f'{answer.target}: {answer.said}')}")
