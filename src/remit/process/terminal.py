"""A program in an enclosure that has our stdin and output, and a terminal of its own where we have one.

Each key goes to that terminal as it is, Ctrl-C too: it ends what the program says that it ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import tty
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, Final

import msgspec

from remit.codes import Code
from remit.errors import StateError, UsageError
from remit.process.child import ChildProcess
from remit.process.enclosure import (
    CommandMissingError,
    Enclosures,
    LooserError,
    Program,
    SandboxUnavailableError,
    python,
)
from remit.tasks import first

_IN_TERMINAL: Final = (
    *("-c", "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"),
    *("sh", "-c", 'stty rows "$0" cols "$1"; shift; exec "$@"'),
)
"""Words for Python that give a program a terminal of its own, of so many rows and columns."""


class EnclosedProgram(ChildProcess):
    """A program whose output is ours."""

    def __init__(self, program: Program, enclosures: Enclosures) -> None:
        super().__init__()
        self._program = program
        self._enclosures = enclosures

    async def run(self, beside: Coroutine[Any, Any, None] | None = None) -> int:
        """Run it to its end; its status, 128 and the signal's number where one ended it. `beside` is done meanwhile.

        Raise OSError, and StateError (SANDBOX_UNAVAILABLE, POLICY_DENIED): it is never started without the sandbox.
        """
        work = (beside,) if beside is not None else ()
        with _terminal() as before:
            try:
                await self._start(before)
                status, *_ = await first(self.ended(), *work)
            except (SandboxUnavailableError, CommandMissingError) as error:
                remedy = getattr(error, "remedy", "") or "`remit sandbox probe` shows what is missing."
                raise StateError(str(error), remedy=remedy, code=Code.SANDBOX_UNAVAILABLE) from error
            except LooserError as error:
                raise StateError(f"its sandbox: {error}", remedy="Leave it out.", code=Code.POLICY_DENIED) from error
            finally:
                for each in work:
                    each.close()
                await self.close()
        return 128 - int(status) if status < 0 else int(status)

    def stop(self) -> None:
        """End it."""
        self.send_signal(signal.SIGTERM)

    def heard(self, data: bytes) -> None:
        _write(1, data)

    def erred(self, data: bytes) -> None:
        _write(2, data)

    async def _start(self, before: tuple[str, ...]) -> None:
        program = msgspec.structs.replace(self._program, before=before)

        async def launch(protocol: asyncio.SubprocessProtocol, *_: object) -> asyncio.SubprocessTransport:
            return await self._enclosures.start(program, protocol)

        await self.start(program.command, env=program.env, launch=launch)
        Thread(target=_feed, args=(asyncio.get_running_loop(), self), daemon=True).start()


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _feed(loop: asyncio.AbstractEventLoop, child: ChildProcess) -> None:
    """Pass our stdin on, in a thread: not every file can be waited for."""
    with suppress(OSError, RuntimeError):  # the terminal is gone, or the program has ended
        while data := os.read(0, 65_536):
            loop.call_soon_threadsafe(child.write, data)
        loop.call_soon_threadsafe(child.close_stdin)


@contextmanager
def _terminal() -> Iterator[tuple[str, ...]]:
    """Yield the words that give a program a terminal, if we have one, which then passes on each key as it is."""
    if not (os.isatty(0) and os.isatty(1)):
        yield ()
        return
    if not python():
        raise UsageError(
            "a program with a terminal needs /usr/bin/python3 here", remedy="Install it, or give a prompt."
        )
    size, before = os.get_terminal_size(0), termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield (python(), *_IN_TERMINAL, str(size.lines), str(size.columns))
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
