"""A program that is run to its end, with all that it starts: its output is archived, and nothing of it is left."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO, Final, Literal

from remit.atomic import clear_place
from remit.clock import Clock
from remit.parts.work.executors.port import ProgramEnding, Site
from remit.parts.work.pack import STDERR as ERR_LOG
from remit.parts.work.pack import STDOUT as OUT_LOG
from remit.process.child import STDERR, ChildProcess, Launch
from remit.process.family import ProcessFamily
from remit.process.reaper import reaped

MAX_LOG = 64_000_000
"""Bytes that are archived of each output; the rest is counted."""
_GRACE_S: Final = 5.0
_LEAVE_S: Final = 2.0
"""Seconds that a program has to leave after a talk."""
_CUT: Final = b"\n[cut: more was written than is archived]\n"
_SIGNALLED: Final = 128
Talk = Callable[[ChildProcess, asyncio.Timeout], Awaitable[None]]
"""Talks to a program over its stdin, and ends it by returning; it may put off the deadline."""
Heard = Callable[[Literal["stdout", "stderr"], bytes], None]
"""Hears output as it comes."""


class _Archive:
    """A file that takes so much and no more."""

    def __init__(self, path: Path) -> None:
        clear_place(path)  # what ran before may have left a link of this name, or a pipe
        self._file: BinaryIO = path.open("xb")
        self.size = 0

    def feed(self, data: bytes) -> None:
        """Write what fits."""
        room = MAX_LOG - self.size
        if room > 0 and not self._file.closed:  # it is once its end was cut short
            self._file.write(data[:room])
            if len(data) > room:
                self._file.write(_CUT)
            self._file.flush()
        self.size += len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Program(ChildProcess):
    """A child whose outputs go to files."""

    def __init__(self, out: _Archive, err: _Archive, listener: Heard) -> None:
        super().__init__(grace_s=_GRACE_S * 2)  # the reaper ends all of it within one
        self._archives = {True: err, False: out}
        self._listener = listener

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        super().pipe_data_received(fd, data)
        self._archives[fd == STDERR].feed(data)
        self._listener("stderr" if fd == STDERR else "stdout", data)


async def run_program(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    logs: tuple[Path, Path],
    clock: Clock,
    listener: Heard = lambda _stream, _data: None,
    launch: Launch | None = None,
    talk: Talk | None = None,
) -> ProgramEnding:
    """Run a command in a folder, to its end and that of all that it started. `logs` take stdout and stderr.

    Its stdin is closed at once, or when `talk` has returned: then it ends by itself, or is ended. `launch` starts it in
    the sandbox, which ends all of it; else the reaper does. Cancellation ends all of it too, and then goes on. Raise
    what `launch` and `talk` raise.
    """
    with closing(_Archive(logs[0])) as out, closing(_Archive(logs[1])) as err:
        child, family = _Program(out, err, listener), ProcessFamily()
        started, timed_out, error, status = clock.now(), False, "", None
        try:
            words = reaped(command, _GRACE_S) if launch is None else command
            await child.start(words, cwd=str(cwd), env={**env, **family.env}, launch=launch)
            async with asyncio.timeout(timeout_s) as deadline:
                if talk is None:
                    child.close_stdin()
                status = await (child.ended() if talk is None else _talked(child, talk(child, deadline)))
        except TimeoutError:
            timed_out = True
        except OSError as failure:
            error = f"{command[0]}: {failure.strerror or failure}"
        finally:
            if child.exit_status is None:
                child.send_signal(signal.SIGTERM)
            await child.close()
            survivors = await asyncio.to_thread(family.end) if launch is None else 0
        return ProgramEnding(
            program=command[0],
            args=tuple(command[1:]),
            timeout=timeout_s,
            started=started,
            finished=clock.now(),
            exit_code=status if status is not None else child.exit_status,
            timed_out=timed_out,
            stdout_bytes=out.size,
            stderr_bytes=err.size,
            survivors=survivors,
            error=error,
        )


async def _talked(child: ChildProcess, talk: Awaitable[None]) -> int | None:
    """Wait for the end of a talk, and a moment for that of the program; return its exit code if it ended by itself."""
    await talk
    child.close_stdin()
    with suppress(TimeoutError):
        async with asyncio.timeout(_LEAVE_S):
            return await child.ended()
    return None


class ProgramExecutor:
    """Any program: its exit code is all that it says."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command

    @property
    def command(self) -> tuple[str, ...]:
        return self._command

    def require(self, env: Mapping[str, str]) -> None:
        """Leave it to the run, whose setup may install it."""

    async def work(self, site: Site) -> ProgramEnding:
        return await run_at(site, site.filled(self._command), site.show)


async def run_at(
    site: Site, command: Sequence[str], listener: Heard, env: Mapping[str, str] | None = None
) -> ProgramEnding:
    """Run the program that does the work of a run, with more variables; `listener` is told of its output."""
    return await run_program(
        command,
        cwd=site.folder,
        env={**site.env, **(env or {})},
        timeout_s=site.timeout_s,
        logs=(site.pack.folder / OUT_LOG, site.pack.folder / ERR_LOG),
        clock=site.clock,
        listener=listener,
        launch=site.launch,
    )
