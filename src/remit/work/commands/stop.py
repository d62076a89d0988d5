"""`remit work stop`: stop the active run of an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.work.commands.staged import show_staged, staged_option

if TYPE_CHECKING:
    from remit.cli.opened import Opened
    from remit.work.views import UnitView


@click.command("stop")
@click.argument("issue")
@click.option("--reason", default="stopped by hand", metavar="TEXT", help="Why. Default: stopped by hand.")
@staged_option
@json_option("the issue's work")
@pass_state
def command(state: State, issue: str, reason: str, staged: bool) -> int:
    """Fence the active run, and wait until none of its processes lives. What it still sends is archived."""
    if staged:
        return show_staged(state, "stop", {"issue_ref": issue, "reason": reason})
    from remit.work.commands.run import take_over
    from remit.work.commands.show import print_unit

    async def stop(remit: Opened) -> UnitView:
        take_over(remit)
        unit: UnitView = await remit.service.work.stop(issue, reason)
        return unit

    unit = state.ask(stop, writes=True)
    return state.show(unit, print_unit)
