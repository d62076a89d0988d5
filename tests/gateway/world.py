"""A gateway over a real journal, catalog and policy, for the tests of every stage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Any, Final, TypeVar

import msgspec

from remit.gateway.approvals import RememberedApprovals
from remit.gateway.call import GateRequest, Progress, no_progress
from remit.gateway.call_limits import CallLimits
from remit.gateway.confirmation import Confirmation
from remit.gateway.confirmations import Confirmations
from remit.gateway.model_request import Allowance, DayLimits
from remit.gateway.outcome import Outcome
from remit.gateway.pipeline import Gateway
from remit.gateway.readiness import DependencyState, Probe, Readiness, probes_of
from remit.gateway.secrets import Secrets
from remit.gateway.services import Services
from remit.gateway.takings import Takings
from remit.gateway.turnstiles import Turnstiles
from remit.ids import new_id
from remit.journal.event import Commit
from remit.journal.journal import Journal
from remit.journal.kinds import ConfirmationDecided, Payload, decode
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit.policy.rules import Policy
from remit.providers.functions.provider import FunctionProvider
from remit.settings.sections.calls import CallLimit
from remit.tools.catalog import Catalog
from remit.tools.function import FunctionTool
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext, ToolProvider, ToolResult
from remit_testing.clock import ManualClock

P = TypeVar("P", bound=Payload)
Behaviour = Callable[[dict[str, Any], CallContext], Any]

ALICE: Final = "alice"
"""Who asks, unless a test says otherwise."""


class WatchedStore(SqliteStore):
    """Keeps a diary of what is submitted and what is durable, in which a test's tools may write as well."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(MEMORY, clock)
        self.diary: list[str] = []
        self.commits: list[Commit] = []

    def submit(self, commit: Commit) -> None:
        kinds = "+".join(event.kind for append in commit.appends for event in append.events)
        self.commits.append(commit)
        self.diary.append(f"submitted {kinds}")
        done = commit.on_done
        if done is not None:

            def written(error: Any) -> None:
                self.diary.append(f"durable {kinds}")
                done(error)

            commit.on_done = written
        super().submit(commit)

    def commit_of(self, kind: str) -> Commit:
        """The newest commit that holds an event of a kind."""
        return next(c for c in reversed(self.commits) if any(e.kind == kind for a in c.appends for e in a.events))


class Scripted:
    """A provider of tools that do whatever a test wants."""

    def __init__(self, metas: Iterable[ToolMeta], behave: Behaviour) -> None:
        self.metas = list(metas)
        self.behave = behave
        self.provider_id = self.metas[0].provider_id

    async def list_tools(self) -> Sequence[ToolMeta]:
        return self.metas

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        result = self.behave(args, ctx)
        given: ToolResult = await result if isawaitable(result) else result
        return given

    async def close(self) -> None:
        return None


def meta(name: str = "odd.tool", level: Level = Level.L0, **changes: Any) -> ToolMeta:
    """A tool of a scripted provider: it reads, unless its level says more."""
    reads = level is Level.L0
    said: dict[str, Any] = {
        "provider_id": "odd",
        "capability_level": level,
        "risk_level": Risk.READ_ONLY if reads else Risk.WRITE,
        "side_effects": not reads,
        "requires_confirm": not reads,
        "input_schema": {"type": "object", "additionalProperties": True},
    }
    return ToolMeta(name=name, **(said | changes))


def odd(behave: Behaviour, level: Level = Level.L0, **changes: Any) -> Scripted:
    """A provider of `odd.tool`, which does what `behave` does."""
    return Scripted([meta(level=level, **changes)], behave)


def state(*, ready: bool, detail: str = "") -> Probe:
    """A probe that always says the same."""

    async def probe() -> DependencyState:
        return DependencyState(ready=ready, code=None if ready else "DEP_UNAVAILABLE", detail=detail)

    return probe


class World:
    """One process with a gateway, and the stream of one caller."""

    def __init__(
        self, store: WatchedStore, clock: ManualClock, providers: Sequence[ToolProvider], **parts: Any
    ) -> None:
        self.store = store
        self.clock = clock
        self.journal = Journal(store, clock)
        self.catalog = Catalog(providers, closed=parts["limits"].schema_gate != "off")
        probes = {**probes_of(providers), **parts["required"], **parts["optional"]}
        self.readiness = Readiness(clock, probes, parts["required"], timeout_s=0.05)
        self.confirmations = Confirmations(self.journal)
        self.remembered = RememberedApprovals(self.journal, self.confirmations)
        self.limits: CallLimits = parts["limits"]
        self.calls: Mapping[str, CallLimit] = parts["calls"]
        self.secrets: Secrets = parts["secrets"]
        self.stream = f"session/{new_id('ses')}"
        self.writer = self.journal.writer(self.stream, "session")
        self.under(parts["rules"])

    def under(self, rules: Iterable[Mapping[str, Any]]) -> None:
        """Go on as a process that was started with these rules."""
        self.policy = Policy.parse(rules)
        self.services = Services(
            journal=self.journal,
            catalog=self.catalog,
            policy=self.policy,
            readiness=self.readiness,
            confirmations=self.confirmations,
            remembered=self.remembered,
            limits=self.limits,
            takings=Takings(self.journal),
            secrets=self.secrets,
            turnstiles=Turnstiles(self.journal, self.calls) if self.calls else None,
            allowance=Allowance(self.journal, DayLimits()),
        )
        self.gateway = Gateway(self.services)

    # --- calling

    async def call(
        self, tool: str = "odd.tool", args: Any = None, progress: Progress = no_progress, **asked: Any
    ) -> Outcome:
        """Call a tool as alice, in step 1 of this session."""
        said = {"step": "1", "principal": ALICE, **asked}
        request = GateRequest(tool=tool, args={} if args is None else args, **said)
        return await self.gateway.call(request, self.writer, progress)

    async def again(self, pending: Outcome, tool: str, args: Any = None, **asked: Any) -> Outcome:
        """Call once more, with the confirmation that a pending outcome named."""
        return await self.call(tool, args, confirmation=pending.confirmation, **asked)

    # --- deciding

    async def question(self, outcome: Outcome) -> Confirmation:
        """The confirmation that an outcome names."""
        return await self.confirmations.find(outcome.confirmation or "")

    async def approve(self, outcome: Outcome, by: str = "bob") -> Confirmation:
        """Approve what a pending outcome waits for."""
        return await self._decide(outcome, "approve", by)

    async def deny(self, outcome: Outcome, by: str = "bob", reason: str = "") -> Confirmation:
        """Refuse it."""
        return await self._decide(outcome, "deny", by, reason)

    async def _decide(self, outcome: Outcome, decision: Any, by: str, reason: str = "") -> Confirmation:
        return await decide(self.confirmations, await self.question(outcome), decision, by, reason)

    # --- looking

    async def recorded(self, stream: str = "") -> list[Payload]:
        """Everything recorded in a stream, in order; its chain is sound."""
        stream = stream or self.stream
        payloads = [decode(event.kind, event.data) for event in await self.journal.read(stream)]
        if payloads:
            await self.journal.verify(stream)
        return [payload for payload in payloads if payload is not None]

    async def kinds(self, stream: str = "") -> list[str]:
        """The kinds of everything recorded."""
        return [payload.KIND for payload in await self.recorded(stream)]

    async def last(self, kind: type[P], stream: str = "") -> P:
        """The newest event of a kind."""
        return [payload for payload in await self.recorded(stream) if isinstance(payload, kind)][-1]

    async def value(self, payload: Any, name: str) -> Any:
        """A recorded value, wherever it is kept."""
        encoded = await self.journal.value(getattr(payload, name), getattr(payload, f"{name}_blob"))
        return msgspec.json.decode(encoded) if encoded is not None else None


async def decide(
    confirmations: Confirmations, found: Confirmation, decision: Any, by: str, reason: str = "", digest: str = ""
) -> Confirmation:
    """Decide a confirmation as it was loaded, with the digest it shows unless told otherwise."""
    answer = ConfirmationDecided(
        confirmation=found.id, decision=decision, digest=digest or found.request.digest, by=by, reason=reason
    )
    return await confirmations.decide(found, answer)


@asynccontextmanager
async def opened(
    *tools: FunctionTool[..., Any] | ToolProvider,
    rules: Iterable[Mapping[str, Any]] = (),
    required: Mapping[str, Probe] | None = None,
    optional: Mapping[str, Probe] | None = None,
    calls: Mapping[str, CallLimit] | None = None,
    secrets: Secrets | None = None,
    **limits: Any,
) -> AsyncIterator[World]:
    """A world with these tools and providers; anything else is a limit."""
    clock = ManualClock()
    store = WatchedStore(clock)
    functions = [each for each in tools if isinstance(each, FunctionTool)]
    providers: list[ToolProvider] = [each for each in tools if not isinstance(each, FunctionTool)]
    world = World(
        store,
        clock,
        [FunctionProvider(functions), *providers],
        rules=rules,
        required=required or {},
        optional=optional or {},
        limits=CallLimits(**limits),
        calls=calls or {},
        secrets=secrets or Secrets(),
    )
    try:
        yield world
    finally:
        await world.catalog.close()
        await world.journal.close()
