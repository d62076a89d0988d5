"""Shows what is longer than the screen in the person's pager; whatever waits goes on meanwhile."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from contextlib import suppress
from typing import Final

from remit.cli.output import OutputChannel

_DEFAULT: Final = "less"
_LESS: Final = "-R"
"""Colours as they are; what `less` is told where the person's LESS says nothing."""
_NONE: Final = ("", "cat")


class PagedLines(OutputChannel):
    """Lines that are written to a channel, or paged, once their number is known."""

    def __init__(self, channel: OutputChannel) -> None:
        super().__init__("stderr", "always" if channel.colored else "never")
        self.lines: list[str] = []
        self._channel = channel

    @property
    def width(self) -> int | None:
        return self._channel.width

    def line(self, text: str = "") -> None:
        self.lines.append(text)

    @property
    def fits(self) -> bool:
        """Return whether the screen shows them all, with a few lines for what comes before and after them."""
        return len(self.lines) + _AROUND <= shutil.get_terminal_size().lines

    def write(self) -> None:
        """Write them to the channel."""
        for text in self.lines:
            self._channel.line(text)


_AROUND: Final = 3


def pager() -> list[str] | None:
    """The command line of the pager, by PAGER; None if no pager can be used."""
    try:
        words = shlex.split(os.environ.get("PAGER", _DEFAULT))
    except ValueError:  # a quotation without its end
        return None
    return words if words and words[0] not in _NONE and shutil.which(words[0]) else None


async def show_paged(command: list[str], lines: list[str]) -> bool:
    """Show lines until the person leaves the pager; whether it could be started."""
    env = {**os.environ, "LESS": os.environ.get("LESS", _LESS)}
    try:
        # Descriptor 1 may lead elsewhere: questions are on stderr.
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=sys.stderr, env=env
        )
    except OSError:
        return False
    try:
        with suppress(BrokenPipeError, ConnectionResetError):  # left before all was read
            await process.communicate("".join(f"{text}\n" for text in lines).encode())
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise
    return process.returncode == 0
