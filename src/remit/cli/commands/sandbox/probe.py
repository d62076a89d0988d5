"""`remit sandbox probe`: what each driver can do here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.sandbox.isolation import ProbeReport


@click.command("probe")
@json_option("what each driver can do")
@pass_state
def command(state: State) -> int:
    """Show what each driver can do on this machine.

    Starts each driver once, as a run would, on a program that does nothing. For the configured driver, also lists the
    programs behind `sandbox.commands`. Exits with status 1 if the configured driver does not reach
    `sandbox.min_isolation`.
    """
    from remit.cli.running import run_to_end
    from remit.cli.sandboxes import commands, demanded, probed

    settings = state.trusted()
    found = run_to_end(probed(settings))
    programs = commands(settings)
    if state.as_json:
        import msgspec

        state.output.json(
            [
                {
                    **msgspec.to_builtins(one),
                    "level": one.level.name,
                    "chosen": (chosen := one.driver == settings.sandbox.driver),
                    "commands": {name: program for name, (program, _) in programs.items()} if chosen else {},
                }
                for one in found
            ]
        )
    else:
        for one in found:
            chosen = one.driver == settings.sandbox.driver
            _print(state, one, chosen=chosen)
            if chosen and one.usable:
                _print_commands(state, programs)
    enough = any(one.driver == settings.sandbox.driver and one.level >= demanded(settings) for one in found)
    return exit_codes.OK if enough else exit_codes.ERROR


def _print(state: State, one: ProbeReport, *, chosen: bool) -> None:
    from remit.cli.text import one_line

    out = state.output.out
    word, style = ("ok", "ok") if one.usable else ("fail", "fail") if chosen else ("no", "dim")
    told = f"{one.level.name}, version {one.version}" if one.usable else "; ".join(one.reasons)
    out.line(f"{out.style(f'{word:<4}', style)}  {one.driver:<9}  {one_line(told)}{'  (chosen)' if chosen else ''}")
    if one.usable:
        for limit, mechanism in sorted(one.limits.items()):
            out.line(f"      {limit:<15}  {mechanism}")
    elif one.remedy:
        out.line(f"      {out.style('->', 'cyan')} {one_line(one.remedy)}")


def _print_commands(state: State, programs: dict[str, tuple[str, str]]) -> None:
    from remit.cli.text import one_line

    out = state.output.out
    for name, (program, why) in programs.items():
        out.line(f"      {one_line(name):<15}  {one_line(program) or out.style(one_line(why), 'warn')}")
