"""The port behind which programs are isolated. testing/sandbox.py is its contract suite."""

from __future__ import annotations

from typing import Protocol

from remit.parts.sandbox.isolation import ProbeReport
from remit.process.enclosure import Listener, ProgramRun, Spec


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
