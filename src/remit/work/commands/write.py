"""`remit work write`: write the comments that are queued for an issue."""

from __future__ import annotations

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.work.commands.asking import asking
from remit.work.commands.staged import show_staged, staged_option


@click.command("write")
@click.argument("issue")
@staged_option
@json_option("the issue's work")
@pass_state
def command(state: State, issue: str, staged: bool) -> int:
    """Write the comments that are queued for an issue, each once, such as after a crash."""
    if staged:
        return show_staged(state, "write", {"issue_ref": issue})
    from remit.work.commands.show import print_unit

    unit = state.ask(asking(state, lambda remit: remit.service.work.write(issue)), writes=True)
    return state.show(unit, print_unit)
