"""The holder of a lease: one process of one machine, so that its death can be noticed before its lease lapses."""

from __future__ import annotations

import os
import re
import socket
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from remit.ids import new_id

_PID: Final = re.compile("[0-9]{1,9}").fullmatch
"""More than any kernel counts to, and less than one takes for an error."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A worker process."""

    host: str
    pid: int
    started: str
    """When the process began, as its kernel counts; tells a recycled process id from the original."""
    worker: str
    """Tells several workers of one process apart."""

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.started}/{self.worker}"

    @property
    def words(self) -> str:
        """The process, for people."""
        return f"process {self.pid} on {self.host.partition('/')[0]}"

    @classmethod
    def this(cls) -> Owner:
        """A new worker of this process."""
        pid = os.getpid()
        return cls(host=_host(), pid=pid, started=_started(pid), worker=new_id("w"))

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """An owner as it was recorded; None for something else."""
        parts = text.rsplit("/", 3)
        if len(parts) != 4 or not _PID(parts[1]):  # noqa: PLR2004 - host, pid, start, worker
            return None
        return cls(host=parts[0], pid=int(parts[1]), started=parts[2], worker=parts[3])

    def dead(self) -> bool:
        """Return whether the process certainly runs no more; an owner on another machine never is."""
        if self.host != _host():
            return False
        if not _alive(self.pid):
            return True
        return _started(self.pid) != self.started


def alive(recorded: str) -> bool:
    """Return whether the process of a recorded owner is known to run still; one on another machine is not."""
    owner = Owner.parse(recorded)
    return owner is not None and owner.host == _host() and not owner.dead()


@cache
def _host() -> str:
    """This machine, and if known this boot and this container: each counts processes again."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
    except OSError:
        boot = "-"
    try:
        processes = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        processes = 0
    return f"{socket.gethostname()}/{boot}/{processes}"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _started(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return "-"
    # Fields follow the command in parentheses, which may itself hold spaces and parentheses; state is the first.
    fields = stat.rpartition(b")")[2].split()
    return "-" if fields[0] == b"Z" else fields[19].decode()
