"""Processes that a child left running in sessions of their own, where a signal to its group does not reach them.

Its processes are known by a mark in the environment that they inherited. A program that clears its environment escapes
on purpose: that takes a sandbox.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from remit.randomness import salt

MARK: Final = "REMIT_FAMILY"
"""The name of the mark: a Remit that a Remit starts has it in its environment too."""
_PROC: Final = Path("/proc")
_ROUNDS: Final = 3
"""Rounds of killing: a process that is killed may have started another process a moment before."""


class Family:
    """A child and its descendants."""

    def __init__(self) -> None:
        self._mark = salt(16).hex()

    @property
    def env(self) -> dict[str, str]:
        """Return what to add to the child's environment."""
        return {MARK: self._mark}

    def end(self) -> int:
        """Kill every process with the mark; how many there were. Reads all of /proc; does nothing on other systems."""
        killed = set[int]()
        for _ in range(_ROUNDS):
            left = {pid for pid in _processes() if self._marked(pid)} - {os.getpid()}
            if left <= killed:
                break
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed |= left
        return len(killed)

    def _marked(self, pid: int) -> bool:
        """Never true of a process that did not inherit the 128 random bits of this family."""
        with suppress(OSError):
            return f"{MARK}={self._mark}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        return False


def _processes() -> list[int]:
    with suppress(OSError):
        return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - no path is needed
    return []
