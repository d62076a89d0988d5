"""The limits of a run (contract: tools, "Sandbox"), only ever made stricter (rule 8), and what it used.

Limits that the kernel holds for each process of a run.

They are set from outside, on the sandbox's first process, before its program begins. Root without CAP_SYS_RESOURCE, as
in most containers, may not do that to another user's process: there the program `prlimit` sets them from inside. NPROC
counts within the sandbox's own user namespace, so that it must not be set any earlier.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from remit.parts.sandbox.identity import identity
from remit.process.enclosure import MB, LooserError, RunLimits

LEAST: Final[Mapping[str, int]] = {"wall_ms": 1, "cpu_ms": 1, "cpu_percent": 1, "pids": 4, "descriptors": 16}
"""Below these nothing starts; every other limit may be 0, memory excepted."""
_LEAST_MEMORY: Final = 16 * MB


def least(name: str) -> int:
    """The smallest value of a limit."""
    return _LEAST_MEMORY if name == "memory_bytes" else LEAST.get(name, 0)


def tightened(limits: RunLimits, overrides: Mapping[str, Any]) -> RunLimits:
    """The limits with those of `overrides`, each at most what it was. Raises LooserError that names the field."""
    for name, value in overrides.items():
        if name not in RunLimits.__struct_fields__:
            raise LooserError(
                f"limits.{name}", f"there is no such limit; known are {', '.join(RunLimits.__struct_fields__)}"
            )
        if not isinstance(value, int) or isinstance(value, bool) or value < least(name):
            raise LooserError(f"limits.{name}", f"it must be a whole number from {least(name)}, not {value!r}")
        if value > getattr(limits, name):
            raise LooserError(f"limits.{name}", f"{value} is more than the {getattr(limits, name)} that is allowed")
    return msgspec.structs.replace(limits, **overrides)


PRLIMIT: Final = "/usr/bin/prlimit"
OWN: Final = 3
"""Processes of a sandbox that are not the program's: its first, the one that becomes the program, and one to spare."""
_STACK: Final = 64 * 1024 * 1024
_CAP_SYS_RESOURCE: Final = 24


@cache
def from_outside() -> bool:
    """Return whether we may set the limits of a process in the sandbox."""
    if identity().uid is None:
        return True
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    return False


def problem() -> str:
    """Return why no limits can be set here; empty: they can."""
    if from_outside() or os.access(PRLIMIT, os.X_OK):
        return ""
    return f"Remit runs as root without CAP_SYS_RESOURCE, and {PRLIMIT} is missing"


def words(limits: RunLimits, *, counted: bool) -> tuple[str, ...]:
    """Return what stands before the program within the sandbox."""
    if from_outside():
        return ()
    return (PRLIMIT, *(f"--{name}={soft}:{hard}" for name, soft, hard in _fitting(0, limits, counted=counted)), "--")


def apply(pid: int, limits: RunLimits, *, counted: bool) -> None:
    """Set the limits of a process, if that is done from outside. Raises OSError.

    `counted`: whether a cgroup counts memory of all processes together, so that no share has to be set for each.
    """
    if from_outside():
        for name, soft, hard in _fitting(pid, limits, counted=counted):
            resource.prlimit(pid, getattr(resource, f"RLIMIT_{name.upper()}"), (soft, hard))


def inherited(limits: RunLimits) -> dict[str, tuple[int, int]]:
    """(soft, hard) by name, for a program that sets them itself before it becomes another.

    Processes are not among them: without a user namespace the kernel would count all processes of the user.
    """
    return {name: (soft, hard) for name, soft, hard in _fitting(0, limits, counted=False) if name != "nproc"}


def _fitting(pid: int, limits: RunLimits, *, counted: bool) -> Iterator[tuple[str, int, int]]:
    """(name, soft, hard) of each, nowhere above the hard limit that is there."""
    for name, value in _values(limits, counted=counted).items():
        hard = resource.prlimit(pid, getattr(resource, f"RLIMIT_{name.upper()}"))[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        yield name, least, least


def _values(limits: RunLimits, *, counted: bool) -> dict[str, int]:
    limits_by_name = {
        "nofile": limits.descriptors,
        "fsize": limits.file_bytes,
        "memlock": 64 * 1024,
        "msgqueue": 0,
        # Not 0: a core dump that is piped to a helper of the host is not stopped by 0, but by 1.
        "core": 1,
        "cpu": -(-limits.cpu_ms // 1000),
        "nice": 0,
        "rtprio": 0,
        "sigpending": 1024,
        "stack": _STACK,
        "nproc": limits.pids + OWN,
    }
    return limits_by_name if counted else {**limits_by_name, "data": limits.memory_bytes}


_TICK: Final = 1000 // os.sysconf("SC_CLK_TCK")
_MOST_FILES: Final = 100_001
"""No limit is higher, and looking costs as well."""


class ProcessUsage(NamedTuple):
    """All processes of a run at one moment."""

    cpu_ms: int
    memory_bytes: int
    pids: int
    """Processes and threads."""


def look(first: int) -> ProcessUsage:
    """Return what a process and all below it use; a sandbox's first process is above every other of it."""
    cpu = memory = pids = 0
    waiting = [first]
    while waiting:
        pid = waiting.pop()
        with suppress(OSError, ValueError, IndexError):
            cpu += _cpu(pid)
            memory += _memory(pid)
            for task in os.listdir(f"/proc/{pid}/task"):
                pids += 1
                waiting += [int(word) for word in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    return ProcessUsage(cpu, memory, pids)


def _cpu(pid: int) -> int:
    """Milliseconds of a process and of those of its children that have ended (proc(5), /proc/pid/stat 14 to 17)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) * _TICK


def _memory(pid: int) -> int:
    total = 0
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(("RssAnon:", "RssShmem:")):
            total += int(line.split()[1]) * 1024
    return total


def size_of(folder: Path) -> tuple[int, int]:
    """Bytes on the disk and files below a folder; a file that vanishes meanwhile counts as gone."""
    total = files = 0
    waiting = [os.fspath(folder)]
    while waiting and files < _MOST_FILES:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    files += 1
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total, files
