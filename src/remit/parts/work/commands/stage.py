"""`--staged`: what a command would write, and nothing is done.

Questions that a command waits for, asked at the terminal at once, if there is one; then the command goes on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from remit.cli.output import one_line
from remit.codes import Code
from remit.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from remit.cli.access import Opened
    from remit.cli.context import CommandState
    from remit.parts.work.stage import StagedWrite, Verb


staged_option = click.option("--staged", is_flag=True, help="Show what would be written and started, and do nothing.")


def show_staged(state: CommandState, verb: Verb, args: dict[str, Any]) -> int:
    """Print what an operation of the work would do; the exit status."""
    return print_staged(state, state.ask(lambda remit: remit.service.work.staged(verb, args), code="unused"))


def print_staged(state: CommandState, writes: list[StagedWrite]) -> int:
    """Print what would be done; the exit status."""
    return state.show(writes, _print)


def _print(state: CommandState, writes: list[StagedWrite]) -> None:

    out = state.output.out
    for write in writes:
        out.line(f"{out.style(write.by, 'bold')}  {one_line(write.what)}")
        for text in write.diff.splitlines():
            out.line(f"    {one_line(text)}")
    state.note("nothing was written")


T = TypeVar("T")
_QUESTION: Final = re.compile(r"\bc_[0-9a-z]{10,}")


def asking(state: CommandState, act: Callable[[Opened], Awaitable[T]]) -> Callable[[Opened], Awaitable[T]]:
    """Return `act`, done again once a person at the terminal has answered what it waits for."""
    from remit.cli.prompt import TerminalPrompt

    async def acted(remit: Opened) -> T:
        while True:
            try:
                return await act(remit)
            except StateError as error:
                waits = _QUESTION.search(error.remedy) if error.code is Code.CONFIRMATION_REQUIRED else None
                if waits is None or state.as_json or not state.output.interactive:
                    raise
                question = await remit.service.confirmations.view(waits[0])
                if not await TerminalPrompt(remit, state.output).ask(question):
                    raise

    return acted
