"""What a face may change: start, signal, cancel and decide. Each is durable when it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from remit.canonical import digest
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import NotFoundError, StateError, UsageError
from remit.gateway.confirmations import Confirmation
from remit.ids import decode, new_id
from remit.jobs.inbox import Inbox
from remit.jobs.plans.plan import SCHEMA_VERSION, Plan, bind_inputs, plan_hash, task_graph
from remit.jobs.program import PLANNER_VERSION
from remit.jobs.recipe import recipe_of
from remit.jobs.state import ENDED, KIND, History, stream_of
from remit.journal.blobs import pack
from remit.journal.event import Blob, Head, HeadPatch
from remit.journal.kinds import (
    CancelRequested,
    ConfirmationDecided,
    JobCreated,
    Payload,
    PlanGenerated,
    SignalSent,
    StepDecided,
)
from remit.policy.remembered import Remembered, Scope
from remit.redact import preview

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.jobs.bound import Bound
    from remit.jobs.recipe import Recipes
    from remit.tools.catalog import Tool

T = TypeVar("T")
_TITLE = 80
_IDENTIFIER = "Give job_ and 26 digits that say which job it is, or nothing for a new one."
_PATIENCE_S = 5.0
"""Seconds that a new job waits for servers still connecting: their tools then do not count for its record."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a job is filed."""

    title: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    priority: int = 0
    """Higher runs first."""
    principal: str = ""
    """Who asks; empty: the configured principal."""
    delay_s: float = 0.0
    """Seconds before it starts by itself; a signal, or resuming it, starts it at once."""
    job: str = ""
    """Its identifier, where another attempt to start it has to meet it: `job_` and 26 digits; empty: a new one."""


class Commands:
    """Everything that changes something, for every face."""

    def __init__(self, services: Services, recipes: Recipes, principal: str, poke: Callable[[], None]) -> None:
        """`principal` asks and decides where nobody else is named; `poke` tells this process's engine of new work."""
        self._journal = services.journal
        self._services = services
        self._recipes = recipes
        self._principal = principal
        self._poke = poke

    # --- jobs

    async def start(self, bound: Bound[T], options: Options | None = None) -> str:
        """Create a job that runs a recipe; its identifier. Raises AppendConflictError where the one given is taken."""
        options = options or Options()
        recipe = recipe_of(bound)
        self._recipes.add(recipe)
        packed = pack(msgspec.json.encode(bound.input))
        created = JobCreated(
            kind="recipe",
            name=recipe.name,
            input=packed.inline,
            input_blob=packed.ref,
            principal=options.principal or self._principal,
            execution_version=recipe.execution_version,
            tool_registry_version=await self._registry_version(),
        )
        return await self._create(recipe.name, packed.blobs, options, created)

    async def start_named(self, name: str, given: Mapping[str, Any], options: Options | None = None) -> str:
        """Create a job by the recipe's name, with input as JSON or as text from a command line."""
        return await self.start(self._recipes.get(name).bind(given, strict=False), options)

    async def start_plan(self, plan: Plan, given: Mapping[str, Any], options: Options | None = None) -> str:
        """Create a job that carries out a task graph. Raises PlanError where the inputs do not fit."""
        options = options or Options()
        inputs = pack(msgspec.json.encode(bind_inputs(plan, given)))
        graph = pack(msgspec.json.encode(task_graph(plan)))
        name = plan.name or "plan"
        created = JobCreated(
            kind="plan",
            name=name,
            input=inputs.inline,
            input_blob=inputs.ref,
            principal=options.principal or self._principal,
            execution_version=PLANNER_VERSION,
            planner_version=PLANNER_VERSION,
            tool_registry_version=await self._registry_version(),
        )
        planned = PlanGenerated(
            task_graph=graph.inline,
            task_graph_blob=graph.ref,
            planner_version=PLANNER_VERSION,
            schema_version=SCHEMA_VERSION,
            plan_hash=plan_hash(plan),
        )
        return await self._create(name, inputs.blobs + graph.blobs, options, created, planned)

    async def signal(self, job: str, name: str, payload: Any = None, *, by: str = "") -> None:
        """Send a signal to a job that has not ended. Raises NotFoundError or StateError."""
        await self._open_job(job)
        if not name:
            raise UsageError("a signal needs a name", code=Code.SIGNAL_INVALID)
        message = SignalSent(name=name, by=by or self._principal)
        await self._post(job, message, _encoded(payload, Code.SIGNAL_INVALID))

    async def cancel(self, job: str, *, by: str = "", reason: str = "") -> None:
        """Ask a job to stop; whoever runs it ends what is under way. Raises NotFoundError or StateError."""
        await self._open_job(job)
        await self._post(job, CancelRequested(by=by or self._principal, reason=reason))

    async def resume(self, job: str) -> None:
        """Make a job due now, whatever it waits for. Raises NotFoundError or StateError."""
        await self._open_job(job)
        await self._journal.wake(stream_of(job))
        self._poke()

    async def decide_step(
        self,
        job: str,
        step: str,
        decision: Literal["done", "retry", "fail"],
        value: Any = None,
        *,
        attempt: int | None = None,
        by: str = "",
        reason: str = "",
    ) -> None:
        """Say what came of an uncertain step (rule 3); the first decision on an attempt counts.

        `attempt` is the one that was shown; without one, whichever waits is taken as seen. Raises NotFoundError or
        StateError.
        """
        await self._open_job(job)
        waits = History(await self._journal.read(stream_of(job))).in_doubt(step)
        if waits is None or attempt not in {None, waits}:
            what = f"step {step} of {job}" if attempt is None else f"attempt {attempt} of step {step} of {job}"
            msg = f"{what} does not wait for a decision"
            remedy = f"`remit show {job}` lists its steps; whoever resumes it says which one waits."
            raise StateError(msg, code=Code.STEP_NOT_FOUND, remedy=remedy)
        message = StepDecided(step=step, attempt=waits, decision=decision, by=by or self._principal, reason=reason)
        encoded = _encoded(value, Code.INVALID_INPUT) if decision == "done" else None
        await Inbox(self._journal, job).decide(message, encoded)
        self._poke()

    # --- confirmations

    async def decide(
        self,
        reference: str,
        decision: Literal["approve", "deny"],
        *,
        digest: str | None = None,
        by: str = "",
        reason: str = "",
    ) -> Confirmation:
        """Approve or deny a call. `digest` is the one that was shown; without one the newest is taken as seen.

        Raises NotFoundError, StateError or UsageError.
        """
        found = await self._services.confirmations.find(reference)
        answer = ConfirmationDecided(
            confirmation=found.id,
            decision=decision,
            digest=found.request.digest if digest is None else digest,
            by=by or self._principal,
            reason=reason,
        )
        decided = await self._services.confirmations.decide(found, answer)
        self._poke()
        return decided

    async def edit(self, reference: str, args: Any, *, by: str = "", reason: str = "") -> Confirmation:
        """Replace an open question by one with other arguments, still to be approved."""
        found = await self._services.confirmations.find(reference)
        tool = await self._tool(found)
        if tool is None or not isinstance(args, dict):
            msg = f"{found.id} asks about no tool's arguments" if tool is None else "arguments are a JSON object"
            raise UsageError(msg, code=Code.INVALID_TOOL_ARGS)
        problems = tool.input.problems(args)
        if problems:
            text = "; ".join(f"{one.path or '/'} {one.message}" for one in problems[:5])
            raise UsageError(f"{tool.meta.name}: {text}", code=Code.INVALID_TOOL_ARGS, remedy="Edit them again.")
        return await self._services.confirmations.edit(found, args, by or self._principal, reason)

    async def remember(
        self, found: Confirmation, scope: Scope, *, seconds: int, exact: bool, by: str = ""
    ) -> Remembered:
        """Let an approval hold for later calls too, within bounds; it can be revoked."""
        tool = await self._tool(found)
        if tool is None:
            raise NotFoundError(f"{found.request.tool_name} is no tool here", code=Code.UNKNOWN_TOOL)
        now = self._journal.clock.now()
        rule = Remembered(
            id="new",
            tool=tool.meta.name,
            provider_id=tool.meta.provider_id,
            contract_hash=found.request.contract_hash,  # of what was approved, whatever this process knows by now
            args_digest=digest(found.args) if exact else None,
            scope=scope,
            stream="" if scope == "everything" else found.caller,
            principal=found.request.principal,
            made_by=found.approved_by,
            made_at=now,
            expires_at=now + seconds * SECOND,
        )
        return await self._services.remembered.keep(rule, found.id, by or self._principal)

    async def revoke(self, rule: str, *, by: str = "", reason: str = "") -> None:
        """End a remembered approval."""
        await self._services.remembered.revoke(rule, by or self._principal, reason)

    # --- common

    async def _create(self, name: str, blobs: tuple[Blob, ...], options: Options, *events: Payload) -> str:
        job = _fit(options.job) if options.job else new_id("job")
        now = self._journal.clock.now()
        created = events[0]
        given = bytes(created.input) if isinstance(getattr(created, "input", None), msgspec.Raw) else b"{}"  # type: ignore[attr-defined]
        patch = HeadPatch(
            state="pending",
            due_at=now + int(options.delay_s * SECOND),
            priority=options.priority,
            title=options.title or f"{name} {preview(given, _TITLE)}",
            labels={**options.labels, "remit.name": name},
        )
        await self._journal.create(stream_of(job), KIND, *events, patch=patch, blobs=blobs)
        self._poke()
        return job

    async def _tool(self, found: Confirmation) -> Tool | None:
        """The tool that a confirmation is about, where this process knows it."""
        return await self._services.catalog.find(found.request.tool_name)

    async def _registry_version(self) -> str:
        await self._services.catalog.tools(_PATIENCE_S)
        return self._services.catalog.version

    async def _open_job(self, job: str) -> Head:
        head = await self._journal.head(stream_of(job))
        if head is None:
            raise NotFoundError(f"no job {job}", code=Code.JOB_NOT_FOUND, remedy="`remit jobs` lists them.")
        if head.state in ENDED:
            raise StateError(f"{job} is already {head.state}", code=Code.JOB_FINISHED, remedy="Start a new one.")
        return head

    async def _post(self, job: str, message: SignalSent | CancelRequested, value: bytes | None = None) -> None:
        await Inbox(self._journal, job).post(message, value)
        self._poke()


def _fit(job: str) -> str:
    """An identifier that a caller chose. Raises UsageError where it is none."""
    prefix, _, digits = job.partition("_")
    try:
        decode(digits)
    except ValueError as error:
        raise UsageError(f"{job!r} is no job's identifier: {error}", remedy=_IDENTIFIER) from error
    if prefix != KIND:
        raise UsageError(f"{job!r} is no job's identifier", remedy=_IDENTIFIER)
    return job


def _encoded(value: Any, code: Code) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(f"the value cannot be sent: {error}", code=code, remedy="Send plain JSON values.") from error
