"""A simulated worker process: the real journal, gateway and runner, over a storage and tools that wait to be told."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Final

from remit.clock import SECOND, Clock
from remit.errors import JournalError
from remit.gateway.approvals import RememberedApprovals
from remit.gateway.call_limits import CallLimits
from remit.gateway.confirmations import Confirmations
from remit.gateway.model_request import Allowance, DayLimits
from remit.gateway.pipeline import Gateway
from remit.gateway.readiness import Readiness
from remit.gateway.services import Services
from remit.gateway.takings import Takings
from remit.jobs.end import PassEnd
from remit.jobs.program import Programs
from remit.jobs.recipe import Recipe, Recipes
from remit.jobs.runner import JobRunner
from remit.jobs.versions import Versions
from remit.journal.event import Commit, LeaseClaim
from remit.journal.journal import Journal
from remit.policy.rules import Policy
from remit.providers.functions.provider import FunctionProvider
from remit.randomness import SystemRandomSource
from remit.tools.catalog import Catalog
from remit.tools.function import FunctionTool
from tests.simulation.shelf import Shelf
from tests.simulation.store import ShelfStore

POLICY: Final = Policy.parse([{"effect": "ask", "tools": ["*.asked"]}, {"effect": "allow", "tools": ["*"]}])
LEASE: Final = 30 * SECOND
here: ContextVar[Process] = ContextVar("here")
"""The process that the running code belongs to."""


class Process:
    """One worker with everything a worker has; whoever steers it says when anything happens."""

    def __init__(
        self,
        name: str,
        shelf: Shelf,
        clock: Clock,
        tools: Iterable[FunctionTool[..., Any]],
        recipes: Iterable[Recipe[..., Any]],
        *,
        steered: bool = True,
    ) -> None:
        """Where it is not `steered`, its storage works by itself."""
        self.name = name
        self.shelf = shelf
        self.store = ShelfStore(shelf, clock, wanted=(lambda: None) if steered else None)
        self.store.wrote = self._wrote
        self.journal = Journal(self.store, clock)
        self.gates: deque[tuple[str, asyncio.Future[None]]] = deque()
        self.finished_before: set[str] = set()
        """Steps whose outcome was recorded when this process got the job."""
        self.effects: list[str] = []
        """Side effects, by the tool's name."""
        self.redone: list[str] = []
        """Those whose outcome was recorded before this process got the job."""
        self.stale: list[str] = []
        """Commits that were accepted though somebody else held the job."""
        self.ended: asyncio.Future[PassEnd | None] = asyncio.get_running_loop().create_future()
        """How its pass ended; None: it had none, or crashed."""
        self.alive = True
        catalog = Catalog([FunctionProvider(tools)])
        confirmations = Confirmations(self.journal)
        self.services = Services(
            journal=self.journal,
            catalog=catalog,
            policy=POLICY,
            readiness=Readiness(clock, {}),
            confirmations=confirmations,
            remembered=RememberedApprovals(self.journal, confirmations),
            limits=CallLimits(),
            takings=Takings(self.journal),
            allowance=Allowance(self.journal, DayLimits()),
        )
        self.programs = Programs(self.journal, Recipes(recipes))
        self.runner = JobRunner(
            journal=self.journal,
            gateway=Gateway(self.services),
            programs=self.programs,
            versions=Versions(self.journal, catalog, "warn", self.services.migrations),
            max_value_bytes=2**20,
            chance=SystemRandomSource(),
            report=lambda _job, _done, _total, _message: None,
        )

    # --- what it does

    async def work(self, stream: str, over: Callable[[], str | None]) -> None:
        """Take the job over from whoever `over` says, as if the lease had lapsed, and go as far as possible."""
        here.set(self)
        await self.gate("begin")
        now = self.journal.clock.now()
        claim = LeaseClaim(kind="job", owner=self.name, now=now, lease_until=now + LEASE, state="running")
        ended: PassEnd | None = None
        try:
            lease = await self.journal.acquire(stream, claim, over=over())
            if lease is not None:
                ended = await self.runner.take(lease).run()
        except Exception as error:  # noqa: BLE001 - a waiter for the end is told
            if not self.ended.done():
                self.ended.set_exception(error)
        if not self.ended.done():
            self.ended.set_result(ended)

    async def gate(self, name: str) -> None:
        """Wait until whoever steers lets this happen."""
        if not self.alive:
            raise asyncio.CancelledError
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.gates.append((name, future))
        await future

    def did(self, effect: str, step: str) -> None:
        """A side effect happens, outside of everything that is recorded."""
        self.effects.append(effect)
        if step in self.finished_before:
            self.redone.append(f"{self.name}: {effect}")

    def _wrote(self, commit: Commit, error: JournalError | None) -> None:
        for append in commit.appends:
            if error is None and append.epoch != self.shelf.heads[append.stream].epoch:
                self.stale.append(f"{self.name}: {', '.join(event.kind for event in append.events)}")

    # --- whoever steers

    @property
    def waiting(self) -> list[str]:
        """What could happen next in it: its storage does the oldest operation, or its code goes on."""
        return [f"{self.name} storage"] * bool(self.store.pending) + [f"{self.name} code"] * bool(self.gates)

    def go(self, what: str) -> str:
        """Let it happen; what it was."""
        if what.endswith("storage"):
            name = self.store.pending or ""
            self.store.step()
            return f"{self.name}: {name}"
        name, future = self.gates.popleft()
        if not future.done():
            future.set_result(None)
        return f"{self.name}: {name}"

    def crash(self) -> str:
        """Be gone: what was not written never will be, and nothing goes on."""
        self.alive = False
        self.store.die()
        self.gates.clear()
        if not self.ended.done():
            self.ended.set_result(None)
        return f"{self.name}: crash"
