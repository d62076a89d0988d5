"""`remit doctor`: is everything in order?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, live_option, pass_state
from remit.cli.output import one_line

if TYPE_CHECKING:
    from remit.capability import Check


@click.command("doctor")
@live_option
@json_option("the checks")
@pass_state
def command(state: CommandState, live: bool) -> int:
    """Check that Remit has everything it needs.

    Checks Python, SQLite, settings, rules, the journal and its disk, folders and the terminal; with --live also your
    modules and servers. Each problem comes with a fix. Exits with status 1 if a check fails.
    """
    from remit.cli.checks import checks
    from remit.cli.runner import run_to_end

    async def look() -> list[Check]:
        return [check async for check in checks(state, live=live)]

    results = run_to_end(look())
    state.show([check._asdict() for check in results], lambda state, _: _print(state, results))
    return exit_codes.ERROR if any(check.verdict == "fail" for check in results) else exit_codes.OK


def _print(state: CommandState, checks: list[Check]) -> None:

    out = state.output.out
    for name, verdict, detail, remedy, code in checks:
        out.line(f"{out.style(f'{verdict:<4}', verdict)}  {name:<9}  {f'{code}: ' * bool(code)}{one_line(detail)}")
        if remedy:
            out.line(f"      {out.style('->', 'cyan')} {one_line(remedy)}")
