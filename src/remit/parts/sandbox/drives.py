"""The base of drivers that supervise another program: one probe, and the runs that are under way."""

from __future__ import annotations

import abc
import asyncio

from remit.parts.sandbox.driver import IsolationCheck, ProbeReport
from remit.parts.sandbox.supervisor import Supervised
from remit.process.enclosure import Listener, ProgramRun, SandboxUnavailableError, Spec, quiet


class FailedCheckError(Exception):
    """A check of a probe that failed."""

    def __init__(self, name: str, reason: str, remedy: str) -> None:
        self.name = name
        self.remedy = remedy
        super().__init__(reason[:500])


class SupervisingDriver(abc.ABC):
    """A driver; a subclass says what it is, how it finds out what it can do, and how it runs a program."""

    name: str

    def __init__(self) -> None:
        self.runs: dict[str, Supervised] = {}
        self._report: ProbeReport | None = None
        self._probing = asyncio.Lock()

    @abc.abstractmethod
    async def look(self) -> ProbeReport:
        """Return what it can do here. Raises FailedCheckError, SandboxUnavailableError or OSError."""

    @abc.abstractmethod
    async def run(self, spec: Spec, listener: Listener) -> ProgramRun:
        """Run a program to its end. Raises SandboxUnavailableError or OSError."""

    async def probe(self) -> ProbeReport:
        """Return what it can do here; the answer holds for this process."""
        async with self._probing:
            if self._report is None:
                try:
                    self._report = await self.look()
                except FailedCheckError as error:
                    self._report = self._failed(error)
                except (SandboxUnavailableError, OSError) as error:
                    self._report = self._failed(FailedCheckError("run", str(error), "Check whether it runs at all."))
            return self._report

    async def exec(self, spec: Spec, listener: Listener = quiet) -> ProgramRun:
        """Run a program. Raises SandboxUnavailableError."""
        probe = await self.probe()
        if not probe.usable:
            raise SandboxUnavailableError("; ".join(probe.reasons), probe.remedy)
        if spec.network:
            reason = f"the driver {self.name} has no filtered network"
            raise SandboxUnavailableError(reason, "Use the driver bwrap with sandbox.network.")
        try:
            return await self.run(spec, listener)
        except OSError as error:
            raise SandboxUnavailableError(f"it cannot be started: {error}") from error

    async def kill(self, run: str) -> None:
        """End a run."""
        if (supervised := self.runs.get(run)) is not None:
            supervised.stop("")

    async def close(self) -> None:
        for run in list(self.runs.values()):
            await run.close()

    def _failed(self, error: FailedCheckError) -> ProbeReport:
        return ProbeReport(
            driver=self.name,
            reasons=(f"{error.name}: {error}",),
            remedy=error.remedy,
            checks=(IsolationCheck(error.name, ok=False, detail=str(error)),),
        )
