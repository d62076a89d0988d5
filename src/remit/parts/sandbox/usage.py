"""Looks at a run now and then, for limits that nothing in the kernel holds for all its processes together."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

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
