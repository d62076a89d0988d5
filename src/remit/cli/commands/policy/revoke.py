"""`remit policy revoke`: end a remembered approval."""

from __future__ import annotations

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import pass_state


@click.command("revoke")
@click.argument("rule", metavar="ID")
@click.option("--reason", default="", help="The reason; it is recorded.")
@pass_state
def command(state: State, rule: str, reason: str) -> int:
    """End a remembered approval.

    The calls that it covered ask a person again. `remit policy rules` lists the ids.
    """
    state.ask(lambda remit: remit.service.approvals.revoke(rule, reason=reason), code="unused", writes=True)
    state.note(f"{rule} is revoked")
    return exit_codes.OK
