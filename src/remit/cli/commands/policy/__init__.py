"""`remit policy`: look at the rules, and at what they say to a call."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "lint": Entry("Commands", "Find wrong and redundant rules, and run the tests."),
    "test": Entry("Commands", "Run the tests of the rules."),
    "explain": Entry("Commands", "Explain what the rules decide for a call."),
    "rules": Entry("Commands", "List the rules and the remembered approvals."),
    "revoke": Entry("Commands", "End a remembered approval."),
}


@click.group("policy", cls=LazyGroup, package="remit.cli.commands.policy", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Check and explain the rules: who may call which tool, and who must approve.

    Rules are tables in remit.toml; see docs/policy.md.
    """
    show_help(context)
