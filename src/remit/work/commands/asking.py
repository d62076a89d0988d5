"""Questions that a command waits for, asked at the terminal at once, if there is one; then the command goes on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

from remit.codes import Code
from remit.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from remit.cli.context import State
    from remit.cli.opened import Opened

T = TypeVar("T")
_QUESTION: Final = re.compile(r"\bc_[0-9a-z]{10,}")


def asking(state: State, act: Callable[[Opened], Awaitable[T]]) -> Callable[[Opened], Awaitable[T]]:
    """Return `act`, done again once a person at the terminal has answered what it waits for."""
    from remit.cli.prompt import Prompt

    async def acted(remit: Opened) -> T:
        while True:
            try:
                return await act(remit)
            except StateError as error:
                waits = _QUESTION.search(error.remedy) if error.code is Code.CONFIRMATION_REQUIRED else None
                if waits is None or state.as_json or not state.output.interactive:
                    raise
                question = await remit.service.confirmations.view(waits[0])
                if not await Prompt(remit, state.output).ask(question):
                    raise

    return acted
