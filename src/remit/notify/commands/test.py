"""`remit notify test`: does a message arrive?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.notify.notifications import TargetAnswer


@click.command("test")
@click.argument("target", required=False, default="")
@json_option("what came back")
@pass_state
def command(state: State, target: str) -> int:
    """Send a test message, and show what came back.

    Sends it at once, to TARGET or to every target, and records nothing. Exits with status 1 if a target fails.
    """
    from remit.cli.running import run_to_end
    from remit.cli.text import one_line

    async def answers() -> list[TargetAnswer]:
        async with state.remit(code="unused", writes=True, blank=True) as remit:
            answers: list[TargetAnswer] = await remit.service.notifications.test(target)
            return answers

    found = run_to_end(answers())
    if state.as_json:
        state.output.json(found)
    elif not found:
        state.note("no one is told: remit.toml has no [[notify]] table")
    else:
        out = state.output.out
        for answer in found:
            verdict = "ok" if answer.ok else "fail"
            out.line(f"{out.style(f'{verdict:<4}', verdict)}  {one_line(f'{answer.target}: {answer.said}')}")
    return exit_codes.OK if all(answer.ok for answer in found) else exit_codes.ERROR
