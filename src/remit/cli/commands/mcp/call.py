"""`remit mcp call`: one call of a server's tool, through the same gate as any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.cli.values import json_object

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.record.outcome import OutcomeView

_PREFIX = "mcp."


@click.command("call")
@click.argument("tool", metavar="SERVER.TOOL")
@click.argument("args", default="{}", metavar="[JSON|@FILE]")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="The seconds that it may take."
)
@json_option("the outcome")
@pass_state
def command(state: CommandState, tool: str, args: str, timeout: float | None) -> int:
    """Call a tool of an MCP server.

    The call passes the same policy, approvals and record as any other. At a terminal you are asked what a person has to
    approve; otherwise the call waits for `remit confirm`, and the same command again makes it.
    """
    from remit.cli.runner import run_to_end

    arguments = json_object(args, "the text of the arguments")
    name = tool if tool.startswith(_PREFIX) else _PREFIX + tool
    outcome = run_to_end(_call(state, name, arguments, timeout))
    state.show(outcome, _print)
    if outcome.status == "pending":
        return exit_codes.WAITING
    return exit_codes.OK if outcome.ok else exit_codes.FAILED


async def _call(state: CommandState, tool: str, args: dict[str, Any], seconds: float | None) -> OutcomeView:
    async with state.remit(servers=True, creates=True) as remit, remit.sending():
        session = await remit.service.sessions.open("cli")
        while True:
            outcome = await remit.service.sessions.call(session, tool, args, timeout_s=seconds)
            if outcome.status != "pending" or not await _is_answered(state, remit, outcome.confirmation):
                return outcome


async def _is_answered(state: CommandState, remit: Remit, confirmation: str) -> bool:
    """Ask the person here about the call; return whether they answered."""
    if not confirmation or state.as_json or not state.output.interactive:
        return False
    from remit.cli.prompt import TerminalPrompt

    return await TerminalPrompt(remit, state.output).ask(await remit.service.confirmations.view(confirmation))


def _print(state: CommandState, outcome: OutcomeView) -> None:
    from remit.cli.question import value_rows

    out = state.output.out
    if outcome.ok:
        if isinstance(outcome.value, str):
            out.line(outcome.value)
        else:
            for row in value_rows(outcome.value, None):
                out.line(row.text)
        return
    waits = outcome.status == "pending"
    remedy = state.command("confirm", outcome.confirmation) if waits and outcome.confirmation else outcome.remedy
    state.output.err.line(f"{outcome.status}: {outcome.named}: {one_line(outcome.reason)}")
    if remedy:
        state.output.err.line(f"-> {one_line(remedy)}")
