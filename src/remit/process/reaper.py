"""A program that runs another one and leaves nothing of it: what that one started in sessions of its own ends with it.

    python reaper.py GRACE_SECONDS PROGRAM [ARGUMENT]…

On Linux it adopts the orphans among its descendants, so that they can be found whatever session they are in. When the
program ends, the rest is killed, until there is none. SIGTERM asks the program to end; after the grace everything is
killed. So it is at once when the process that started this one dies. It exits as the program did: with 128 and the
signal's number where a signal ended it.

It imports the standard library alone: it starts often, and beside programs that are large enough.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_POLL_S: Final = 0.02
_NOT_FOUND: Final = 127
_SIGNALLED: Final = 128
_PROC: Final = Path("/proc")


def reaped(command: Sequence[str], grace_s: float) -> list[str]:
    """Return the command that runs another one under this program: a file and no module, for it imports no part of us.

    It is the command itself on a system that lets no orphans be found.
    """
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", __file__, str(grace_s), *command]


def main(words: list[str]) -> int:
    """Run a program to its end, and to that of all that it started; return the exit status."""
    grace_s, *command = words
    parent = os.getppid()
    _adopt_orphans()
    stop = _Stop(parent)
    signal.signal(signal.SIGTERM, stop.asked)
    if os.getppid() != parent:  # it died before it could be watched
        return _SIGNALLED + signal.SIGKILL
    try:
        program = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGTERM, signal.SIGINT, signal.SIGPIPE),
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201 - a program of its own
        return _NOT_FOUND
    try:
        return _status(_wait(program, stop, float(grace_s)))
    finally:
        _kill_descendants()


class _Stop:
    """When the program was asked to end."""

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self.at: float | None = None

    def asked(self, _signal: int, _frame: object) -> None:
        """Note the moment of the first request."""
        if self.at is None:
            self.at = time.monotonic()

    @property
    def is_orphaned(self) -> bool:
        """Return whether the process that started this one is gone."""
        return os.getppid() != self._parent


def _wait(program: int, stop: _Stop, grace_s: float) -> int:
    """Return the wait status of the program, which ends by itself, after SIGTERM, or killed with what it started."""
    stop_sent = False
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == program:
            return status
        if pid:
            continue  # an orphan that was adopted
        if stop.at is not None and not stop_sent:
            stop_sent = True
            with suppress(ProcessLookupError):
                os.killpg(program, signal.SIGTERM)
        if stop.at is not None and (stop.is_orphaned or time.monotonic() - stop.at > grace_s):
            _kill_all()
        _pause()


def _pause() -> None:
    """Wait until a child ends or a signal comes, for a moment at most."""
    signal.sigtimedwait((signal.SIGCHLD,), _POLL_S)


def _kill_descendants() -> None:
    """Kill until there is no child left: those of what is killed come here as its orphans."""
    while True:
        _kill_all()
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            _pause()


def _kill_all() -> int:
    """Kill every descendant; return how many there were."""
    killed = 0
    for pid in _descendants():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed


def _descendants() -> Iterator[int]:
    """Return every process below this one, itself left out."""
    parents = dict(_parents())
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    yield from below - {os.getpid()}


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir(_PROC):  # noqa: PTH208 - no path is needed
        if name.isdecimal():
            with suppress(OSError, ValueError):
                state, parent = (_PROC / name / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    yield int(name), int(parent)


def _adopt_orphans() -> None:
    """Have orphans come here, and a signal when the process that started this one dies."""
    import ctypes  # noqa: PLC0415 - who starts this program imports it, and needs none

    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def _status(wait_status: int) -> int:
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else _SIGNALLED - code


def _run() -> NoReturn:
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    _run()
