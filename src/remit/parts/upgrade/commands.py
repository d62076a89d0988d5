"""`remit upgrade`: this version of Remit, and what another one left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line, reserved_stdout
from remit.errors import JournalError, RemitError

if TYPE_CHECKING:
    from remit.capability import Check


@click.command("upgrade")
@click.option("--check", is_flag=True, help="Write nothing; say also whether open jobs fit the code that is here.")
@json_option("the findings")
@pass_state
def command(state: CommandState, check: bool) -> int:
    """Bring the journal up to date, or say with --check whether all fits this Remit.

    Looks at the journal's schema, at events of a newer Remit, at processes of other versions and at remit.toml; --check
    also replays every open job on the code that is here, which imports your modules. A journal is never brought back to
    an older schema. Exits with status 1 if something does not fit; nothing is changed then.
    """
    with reserved_stdout():
        checks = _findings(state, code=check)
        fits = all(one.verdict != "fail" for one in checks)
        if fits and not check:
            state.ask_here(lambda remit: remit.runtime.journal.put_blobs(()), code="unused", writes=True)
    state.show([one._asdict() for one in checks], lambda state, _: _print(state, checks))
    return exit_codes.OK if fits else exit_codes.ERROR


def _findings(state: CommandState, *, code: bool) -> list[Check]:
    """Look at settings, then at the journal, then at code; what cannot be looked at is a finding."""
    from remit.capability import Check
    from remit.parts.upgrade.look import look_at, refused

    try:
        settings = state.settings()
    except RemitError as error:
        return [refused("settings", error)]
    found = [Check("settings", "ok", settings.written.path or "no remit.toml")]
    try:
        return found + state.ask_here(lambda remit: look_at(remit, code=code), code="needed" if code else "unused")
    except JournalError as error:
        return [*found, refused("journal", error)]
    except RemitError as error:
        return [*found, refused("code" if code else "settings", error)]


def _print(state: CommandState, found: list[Check]) -> None:
    out = state.output.out
    for name, verdict, detail, remedy, code in found:
        out.line(f"{out.style(f'{verdict:<4}', verdict)}  {name:<8}  {f'{code}: ' * bool(code)}{one_line(detail)}")
        if remedy:
            out.line(f"      {out.style('->', 'cyan')} {one_line(remedy)}")
