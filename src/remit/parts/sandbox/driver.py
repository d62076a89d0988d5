"""The port behind which programs are isolated, and how well. testing/sandbox.py is its contract suite."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Protocol

import msgspec

from remit.process.enclosure import Listener, ProgramRun, Spec


class Isolation(IntEnum):
    """The degree to which a program is kept from the machine; the settings say `namespaces`, not 2."""

    none = 0
    """Nothing runs."""
    namespaces = 2
    """The same kernel; files, processes, network and users of its own."""
    kernel = 3
    """Another kernel: gVisor, or a machine of its own (Kata)."""


class IsolationCheck(msgspec.Struct, frozen=True):
    """One thing that was tried."""

    name: str
    ok: bool
    detail: str = ""


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of a probe. It really ran the whole command line; nothing here is a guess."""

    driver: str
    version: str = ""
    level: Isolation = Isolation.none
    limits: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The mechanism behind each limit, such as `memory: cgroup v2`; one that ends in `(soft)` looks every 50 ms."""
    reasons: tuple[str, ...] = ()
    """The reasons why it isolates no better, the failed check first."""
    remedy: str = ""
    checks: tuple[IsolationCheck, ...] = ()

    @property
    def usable(self) -> bool:
        """Return whether anything can run."""
        return self.level > Isolation.none


class Driver(Protocol):
    """One way to isolate. What a run leaves in its workspace is collected from there (artifacts.py), alike for all."""

    @property
    def name(self) -> str:
        """`bwrap` or `container`."""
        ...

    async def probe(self) -> ProbeReport:
        """Return what it can do here, found out by running its whole command line. Never raises."""
        ...

    async def exec(self, spec: Spec, listener: Listener) -> ProgramRun:
        """Run a program to its end; return once every process of it is gone.

        Cancelling it kills the program, and passes on once all of it is gone. Raises SandboxUnavailableError if the
        sandbox cannot be set up; the program has then not begun.
        """
        ...

    async def kill(self, run: str) -> None:
        """End a run, which then has the status FAILED and the signal SIGKILL; one that has ended is left alone."""
        ...

    async def close(self) -> None:
        """Kill what still runs and leave nothing behind."""
        ...
