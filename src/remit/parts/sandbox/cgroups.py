"""A cgroup of its own for a run, where this process may make one: version 2, else 1 (`cgroups(7)`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from remit.parts.sandbox.cleanup import cleanup_process
from remit.parts.sandbox.leftovers import members, remove
from remit.process.enclosure import RunLimits

_ROOT: Final = Path("/sys/fs/cgroup")
_WANTED: Final = ("memory", "pids", "cpu", "cpuacct")
_PERIOD: Final = 100_000
_IDLE: Final = 16
"""Leaves that wait for a run at most."""
_numbers: Final = count()


class Counted(NamedTuple):
    """The counts of a run by its cgroup."""

    cpu_ms: int | None = None
    memory_bytes: int | None = None
    out_of_memory: int = 0
    """Processes that the kernel ended for want of memory."""
    out_of_pids: int = 0
    """Refused forks."""


class Leaf:
    """The cgroup of one run at a time; of version 1, it serves again once it is empty."""

    def __init__(self, version: int, folders: Mapping[str, Path]) -> None:
        self.version = version
        self.folders = folders
        self._before = Counted()

    @property
    def limits(self) -> Mapping[str, str]:
        """The mechanism behind each limit that it holds."""
        name = f"cgroup v{self.version}"
        held = {"memory": "memory_bytes", "pids": "pids", "cpu": "cpu_percent"}
        return {limit: name for controller, limit in held.items() if controller in self.folders}

    def set(self, limits: RunLimits, own: int) -> None:
        """Take these limits; `own` processes are the sandbox's. Raises OSError."""
        if self.version == 1:
            self._set_v1(limits, own)
        else:
            self._set_v2(limits, own)
        self._before = self._counters()

    def restart(self) -> None:
        """Count from now on."""
        self._before = self._counters()

    def add(self, pid: int) -> None:
        """Take a process in, and what it starts from now on. Raises OSError."""
        for folder in set(self.folders.values()):
            _write(folder / "cgroup.procs", pid)

    def counted(self) -> Counted:
        """Return what the run used since `set`."""
        now, before = self._counters(), self._before
        cpu = None if now.cpu_ms is None else now.cpu_ms - (before.cpu_ms or 0)
        return Counted(
            cpu, now.memory_bytes, now.out_of_memory - before.out_of_memory, now.out_of_pids - before.out_of_pids
        )

    def remove(self) -> None:
        """Delete it; what is still in it is killed."""
        for folder in set(self.folders.values()):
            remove(folder)

    # --- the two versions

    def _set_v1(self, limits: RunLimits, own: int) -> None:
        folders = self.folders
        if "memory" in folders:
            memory = folders["memory"]
            swap = memory / "memory.memsw.limit_in_bytes"
            if swap.exists():
                _write(swap, -1)
            _write(memory / "memory.limit_in_bytes", limits.memory_bytes)
            if swap.exists():
                _write(swap, limits.memory_bytes)
            _write(memory / "memory.max_usage_in_bytes", 0)
        if "pids" in folders:
            _write(folders["pids"] / "pids.max", limits.pids + own)
        if "cpu" in folders:
            _write(folders["cpu"] / "cpu.cfs_period_us", _PERIOD)
            _write(folders["cpu"] / "cpu.cfs_quota_us", max(1_000, _PERIOD * limits.cpu_percent // 100))

    def _set_v2(self, limits: RunLimits, own: int) -> None:
        folder = next(iter(self.folders.values()))
        if "memory" in self.folders:
            _write(folder / "memory.max", limits.memory_bytes)
            with suppress(OSError):
                _write(folder / "memory.swap.max", 0)
            _write(folder / "memory.oom.group", 1)
        if "pids" in self.folders:
            _write(folder / "pids.max", limits.pids + own)
        if "cpu" in self.folders:
            _write(folder / "cpu.max", f"{max(1_000, _PERIOD * limits.cpu_percent // 100)} {_PERIOD}")

    def _counters(self) -> Counted:
        if self.version == 1:
            memory, pids, cpu = (self.folders.get(name) for name in ("memory", "pids", "cpuacct"))
            return Counted(
                cpu_ms=_number(cpu and cpu / "cpuacct.usage", 1_000_000),
                memory_bytes=_number(memory and memory / "memory.max_usage_in_bytes"),
                out_of_memory=_field(memory and memory / "memory.oom_control", "oom_kill"),
                out_of_pids=_field(pids and pids / "pids.events", "max"),
            )
        folder = next(iter(self.folders.values()))
        return Counted(
            cpu_ms=_field(folder / "cpu.stat", "usage_usec") // 1000,
            memory_bytes=_number(folder / "memory.peak"),
            out_of_memory=_field(folder / "memory.events", "oom_kill"),
            out_of_pids=_field(folder / "pids.events", "max"),
        )


class Leaves:
    """Makes leaves, and takes them back."""

    def __init__(self) -> None:
        self.version, self._parents = _parents()
        self._idle: list[Leaf] = []

    def take(self) -> Leaf | None:
        """An empty leaf, or None if none can be made here."""
        if self._idle:
            return self._idle.pop()
        return self._make()

    def give_back(self, leaf: Leaf) -> None:
        """The run is over: the leaf waits for the next one, or is deleted, for version 2 keeps its peaks."""
        if leaf.version == 1 and len(self._idle) < _IDLE and not _members(leaf):
            self._idle.append(leaf)
        else:
            leaf.remove()

    def close(self) -> None:
        """Delete those that wait."""
        while self._idle:
            self._idle.pop().remove()

    def _make(self) -> Leaf | None:
        name = f"{cleanup_process().mark}-{next(_numbers)}"
        folders = {controller: parent / name for controller, parent in self._parents.items()}
        try:
            for parent in set(self._parents.values()):
                cleanup_process().tell("cgroup", parent)
            for folder in set(folders.values()):
                folder.mkdir()
        except OSError:
            for folder in set(folders.values()):
                remove(folder)
            return None
        return Leaf(self.version, folders) if folders else None


def _members(leaf: Leaf) -> bool:
    return any(members(folder) for folder in set(leaf.folders.values()))


def _parents() -> tuple[int, dict[str, Path]]:
    """The version in use here, and the folder in which a leaf can be made, for each controller."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return 2, {}
    rows = [line.split(":", 2) for line in lines]
    unified = next((_ROOT / path.lstrip("/") for number, _, path in rows if number == "0"), None)
    if unified is not None and (_ROOT / "cgroup.controllers").exists():
        for parent in (unified, unified.parent):
            enabled = _enabled(parent)
            if {"memory", "pids"} <= enabled and os.access(parent, os.W_OK):
                return 2, {controller: parent for controller in ("memory", "pids", "cpu") if controller in enabled}
        return 2, {}
    parents = {}
    for number, names, path in rows:
        for name in names.split(",") if number != "0" else ():
            parent = _ROOT / name / path.lstrip("/")
            if name in _WANTED and os.access(parent, os.W_OK):
                parents[name] = parent
    return 1, parents if {"memory", "pids"} <= set(parents) else {}


def _enabled(folder: Path) -> set[str]:
    try:
        return set((folder / "cgroup.subtree_control").read_text().split())
    except OSError:
        return set()


def _write(file: Path, value: int | str) -> None:
    fd = os.open(file, os.O_WRONLY)
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)


def _number(file: Path | None, unit: int = 1) -> int | None:
    try:
        return None if file is None else int(file.read_text()) // unit
    except (OSError, ValueError):
        return None


def _field(file: Path | None, name: str) -> int:
    try:
        lines = file.read_text().splitlines() if file is not None else []
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name + " ")), 0)
