"""`remit policy`: look at the rules, and at what they say to a call."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "lint": Entry("Commands", "Find rules that are wrong or useless, and run the tests."),
    "test": Entry("Commands", "Run the tests that stand beside the rules."),
    "explain": Entry("Commands", "Say what the rules make of a call, and why."),
    "rules": Entry("Commands", "List the rules and the remembered approvals."),
    "revoke": Entry("Commands", "End a remembered approval."),
}


@click.group("policy", cls=LazyGroup, package="remit.cli.commands.policy", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Rules: who may call which tool, and who is asked.

    Rules stand in remit.toml; docs/policy.md says how to write them.
    """
    show_help(context)
