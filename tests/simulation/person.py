"""The person in a simulation: answers whatever a job waits for, once, and knows what really happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from remit.capability import Capability
from remit.gateway.pipeline import Gateway
from remit.gateway.services import Services
from remit.jobs.program import Programs
from remit.jobs.skills import NO_SKILLS, Skills
from remit.jobs.state import JobHistory, stream_of
from remit.journal.journal import Journal
from remit.randomness import SystemRandomSource
from remit.record.uses import JournalVersions
from remit.service.local import service_over
from remit.service.parts import Worker
from remit.settings import Settings, load
from remit.settings.mcp import McpServer
from remit.tools.catalog import Catalog
from remit.tools.listings import ToolVersionRegistry
from remit.tools.meta import ToolMeta
from remit.tools.pins import Pins
from tests.simulation.process import Process


class _Parts(NamedTuple):
    """What nouns are made of."""

    journal: Journal
    services: Services
    gateway: Gateway
    catalog: Catalog
    programs: Programs
    pins: Pins
    settings: Settings
    chance: SystemRandomSource
    versions: ToolVersionRegistry
    parts: tuple[Capability, ...] = ()
    servers: tuple[McpServer, ...] = ()
    skills: Skills = NO_SKILLS
    unlisted: tuple[ToolMeta, ...] = ()


class Person:
    """Sends the signal `go`, approves what is asked, and decides on uncertain steps by what happened."""

    def __init__(self, process: Process, happened: Callable[[str], bool]) -> None:
        """`happened` tells whether a tool had its effect."""
        parts = _Parts(
            process.journal,
            process.services,
            Gateway(process.services),
            process.services.catalog,
            process.programs,
            Pins(process.journal, trust=False, principal="bob"),
            load(env={}, search=False),
            SystemRandomSource(),
            JournalVersions(process.journal),
        )
        self.service = service_over(parts, principal="bob", worker=Worker(lambda: None, lambda: True))
        self._process = process
        self._happened = happened
        self._answered: set[str] = set()

    async def answer(self, job: str) -> None:
        """Answer until the job has ended."""
        mark, stream, shelf = 0, stream_of(job), self._process.shelf
        while not shelf.heads[stream].closed:
            mark = await self._process.journal.changed(mark)
            history = JobHistory(shelf.events[stream])
            for confirmation in await self._process.services.confirmations.pending(stream):
                await self.service.confirmations.decide(confirmation.id, "approve")
            for (step, key), record in history.waits.items():
                if record.completed is not None:
                    continue
                if record.waiting.wait_type == "signal" and key == "go":
                    await self._once(f"{job} go", partial(self.service.jobs.signal, job, "go", "now"))
                if key.startswith("uncertain:"):
                    await self._once(f"{job} {step} {key}", partial(self._decide, job, history, step))

    async def _once(self, what: str, act: Callable[[], Awaitable[Any]]) -> None:
        if what not in self._answered:
            self._answered.add(what)
            await act()

    async def _decide(self, job: str, history: JobHistory, step: str) -> None:
        started = history.calls[step].started
        assert started is not None
        if self._happened(started.tool_name):
            arguments = msgspec.json.decode(bytes(msgspec.json.encode(started.args)))
            await self.service.steps.decide(job, step, "done", arguments["number"])
        else:
            await self.service.steps.decide(job, step, "retry")
