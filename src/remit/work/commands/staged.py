"""`--staged`: what a command would write, and nothing is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from remit.cli.output import one_line

if TYPE_CHECKING:
    from remit.cli.context import State
    from remit.work.staging import StagedWrite, Verb

staged_option = click.option("--staged", is_flag=True, help="Show what would be written and started, and do nothing.")


def show_staged(state: State, verb: Verb, args: dict[str, Any]) -> int:
    """Print what an operation of the work would do; the exit status."""
    return print_staged(state, state.ask(lambda remit: remit.service.work.staged(verb, args), code="unused"))


def print_staged(state: State, writes: list[StagedWrite]) -> int:
    """Print what would be done; the exit status."""
    return state.show(writes, _print)


def _print(state: State, writes: list[StagedWrite]) -> None:

    out = state.output.out
    for write in writes:
        out.line(f"{out.style(write.by, 'bold')}  {one_line(write.what)}")
        for text in write.diff.splitlines():
            out.line(f"    {one_line(text)}")
    state.note("nothing was written")
