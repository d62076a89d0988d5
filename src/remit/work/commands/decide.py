"""`remit work decide`: put an issue into a state."""

from __future__ import annotations

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.work.commands.staged import show_staged, staged_option
from remit.work.unit import STATES


@click.command("decide")
@click.argument("issue")
@click.argument("to", metavar="STATE", type=click.Choice(STATES))
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@staged_option
@json_option("the issue's work")
@pass_state
def command(state: State, issue: str, to: str, reason: str, staged: bool) -> int:
    """Put an issue into a state: done after a review, todo to open it again, blocked.

    Only a decision makes an issue done. It is refused while a run is active.
    """
    if staged:
        return show_staged(state, "decide", {"issue_ref": issue, "state": to, "reason": reason})
    from remit.work.commands.show import print_unit

    unit = state.ask(lambda remit: remit.service.work.decide(issue, to, reason=reason), code="unused", writes=True)
    return state.show(unit, print_unit)
