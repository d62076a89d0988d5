"""`remit work switch`: put another executor in the place of the active one."""

from __future__ import annotations

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.work.commands.staged import show_staged, staged_option


@click.command("switch")
@click.argument("issue")
@click.option("--executor", required=True, metavar="NAME", help="Who takes over.")
@click.option("--reason", required=True, metavar="TEXT", help="Why, such as timeout or changes requested.")
@click.option("--role", default="work", metavar="NAME", help="The role of the run. Default: work.")
@click.option("--detach", is_flag=True, help="Print the run's id and leave it to a worker.")
@staged_option
@json_option("the result of the run")
@pass_state
def command(state: State, issue: str, executor: str, reason: str, role: str, detach: bool, staged: bool) -> int:
    """Fence the active run, wait until none of its processes lives, and hand the issue to another executor.

    The new run begins at what the old one committed. What the old one still sends is archived:
    `remit work show` counts it.
    """
    if staged:
        return show_staged(state, "switch", {"issue_ref": issue, "executor": executor, "reason": reason, "role": role})
    from remit.work.commands.run import see_through
    from remit.work.executors.registry import MANUAL

    return see_through(
        state,
        lambda remit: remit.service.work.switch(issue, executor, reason, role=role),
        detach=detach or executor == MANUAL,
    )
