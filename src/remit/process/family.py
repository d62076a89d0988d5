"""Processes that a child left running in sessions of their own, where a signal to its group does not reach them.

Its processes are known by a mark in the environment that they inherited. A program that clears its environment escapes
on purpose: that takes a sandbox.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from remit.randomness import salt

MARK: Final = "REMIT_FAMILY"
"""The name of the mark: a Remit that a Remit starts has it in its environment too."""
_PROC: Final = Path("/proc")
_ROUNDS: Final = 20
"""Rounds of killing: a process that is killed may have started another process a moment before."""
_PAUSE_S: Final = 0.01
"""For a process that begins its program: until it has, the kernel shows no environment of it."""


class ProcessFamily:
    """A child and its descendants."""

    def __init__(self) -> None:
        self._mark = salt(16).hex()
        self._older = frozenset(_processes())

    @property
    def env(self) -> dict[str, str]:
        """Return what to add to the child's environment."""
        return {MARK: self._mark}

    def end(self) -> int:
        """Kill every process with the mark; how many there were. Reads all of /proc; does nothing on other systems."""
        killed = set[int]()
        for _ in range(_ROUNDS):
            environments = {pid: _environment(pid) for pid in _processes()}
            marked = {pid for pid, environment in environments.items() if self._marks(environment)} - {os.getpid()}
            beginning = {pid for pid, environment in environments.items() if environment == b""} - self._older
            if marked <= killed and not beginning:
                break
            for pid in marked:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed |= marked
            if beginning:
                time.sleep(_PAUSE_S)  # noqa: TID251 - the kernel does not tell when a program has begun
        return len(killed)

    def _marks(self, environment: bytes | None) -> bool:
        """Return whether it holds the 128 random bits that only this family inherits."""
        return environment is not None and f"{MARK}={self._mark}".encode() in environment.split(b"\0")


def _processes() -> list[int]:
    with suppress(OSError):
        return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - no path is needed
    return []


def _environment(pid: int) -> bytes | None:
    """Return the environment of a process; None for one that is not ours to read, or runs no program any more."""
    folder = _PROC / str(pid)
    with suppress(OSError):
        (folder / "exe").readlink()
        return (folder / "environ").read_bytes()
    return None
