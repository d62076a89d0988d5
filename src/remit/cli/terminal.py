"""Lines that a person types and long texts by the page; the job goes on meanwhile, and Ctrl-C comes through."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from remit.cli.output import OutputChannel

_CHUNK: Final = 4096


async def read_line() -> str | None:
    """The next line typed into stdin, without its end; None at its end (Ctrl-D).

    The terminal stays in line mode, so that its own editing keys work.
    """
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()
    typed = b""
    while not typed.endswith(b"\n"):
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(descriptor, _ready, ready)
        try:
            await ready
        finally:
            loop.remove_reader(descriptor)
        piece = os.read(descriptor, _CHUNK)
        if not piece:
            return typed.decode(errors="replace") or None
        typed += piece
    return typed.decode(errors="replace").rstrip("\r\n")


def forget_typed() -> None:
    """Drop what was typed before anyone asked: keys pressed while a job ran must not answer its question."""
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the wait for a line at once, whatever else handles it."""
    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _ready(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


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
        from shutil import get_terminal_size

        return len(self.lines) + _AROUND <= get_terminal_size().lines

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
    from shutil import which

    return words if words and words[0] not in _NONE and which(words[0]) else None


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
