"""Recipes as tools: a client starts a job, is given its result if that comes soon, and a handle if it does not.

    recipe.<name>     starts a job; waits a while for its end
    job.status        where a job stands, and what it asks people
    job.result        its result, once it has one
    job.cancel        asks it to stop

A client is told of its own jobs only. What the recipe does passes the gateway as in any other job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from remit.codes import Code
from remit.errors import (
    AppendConflictError,
    NameInvalidError,
    NotFoundError,
    ProviderError,
    SchemaError,
    StateError,
    UsageError,
)
from remit.jobs.state import ENDED, KIND, stream_of
from remit.journal.kinds import ToolInvocationStarted, decode
from remit.service.jobs import Options
from remit.tools import hints
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext, ToolResult

if TYPE_CHECKING:
    from remit.jobs.recipe import Recipe
    from remit.journal.journal import Journal
    from remit.service.service import Service

PROVIDER_ID: Final = "jobs"
WAIT_S: Final = 20.0
"""Seconds a call waits for the end of its job: well below what clients wait for an answer."""
_JOB: Final = {"type": "string", "description": "the job's identifier, as starting it gave it"}
_STATUS: Final = {
    "type": "object",
    "properties": {
        "job": {"type": "string"},
        "state": {"type": "string", "description": "completed, failed and cancelled are the end of it"},
        "result": {"description": "what the recipe returned, once it has completed"},
        "error": {"type": "object", "description": "why it failed"},
        "questions": {
            "type": "array",
            "items": {"type": "object"},
            "description": "what it asks people; it goes on once they have answered",
        },
    },
    "required": ["job", "state"],
}


class ExposedJobs:
    """The provider of recipes that clients may start."""

    def __init__(
        self,
        recipes: Iterable[Recipe[..., Any]],
        patterns: Sequence[str],
        journal: Journal,
        service: Callable[[], Service],
    ) -> None:
        """Offer the recipes whose names fit one of the patterns. `service` is asked once there is one.

        Raises NameInvalidError where two would have one name.
        """
        chosen = [each for each in recipes if any(fnmatchcase(each.name, pattern) for pattern in patterns)]
        self._recipes: dict[str, Recipe[..., Any]] = {}
        for each in chosen:
            name = f"recipe.{each.name.replace('.', '_')}"
            if self._recipes.setdefault(name, each) is not each:
                msg = f"the recipes {each.name} and {self._recipes[name].name} would both be the tool {name}"
                raise NameInvalidError(msg, remedy="Rename one of them, or expose only one: mcp.expose.")
        self._journal = journal
        self._service = service
        self._closed = False

    @property
    def provider_id(self) -> str:
        """`jobs`."""
        return PROVIDER_ID

    async def list_tools(self) -> Sequence[ToolMeta]:
        """One tool for each recipe, and three for what became of it; none where no recipe is offered."""
        if not self._recipes:
            return []
        return [*(_meta(name, each) for name, each in sorted(self._recipes.items())), *_HANDLES]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Start, look at or stop a job. Raises ProviderError."""
        if self._closed:
            raise ProviderError("jobs are offered no more", cause=Code.ProviderClosed)
        try:
            if name in self._recipes:
                return ToolResult(await self._start(self._recipes[name], args, ctx))
            job = await self._own(args["job"], ctx.principal)
            if name == "job.cancel":
                await self._service().jobs.cancel(job, by=ctx.principal, reason=args.get("reason", ""))
            elif name == "job.result":
                await self._wait(job)
            return ToolResult(await self._status(job))
        except (NotFoundError, StateError, UsageError) as error:
            why = f"{error.message} {error.remedy}".strip()
            raise ProviderError(why, cause=Code.InvalidInput, code=_outcome_code(error.code)) from error

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:
        """The job that an announced call started or stopped, if it did."""
        if name in self._recipes:
            job = await self._job_of(ctx)
            done = await self._journal.head(stream_of(job)) is not None
        else:
            job = await self._own(args["job"], ctx.principal)
            done = (await self._service().jobs.row(job)).state == "cancelled"
        return ToolResult(await self._status(job)) if done else None

    async def close(self) -> None:
        """Take no more calls; jobs go on."""
        self._closed = True

    # --- common

    async def _start(self, recipe: Recipe[..., Any], args: dict[str, Any], ctx: CallContext) -> dict[str, Any]:
        job = await self._job_of(ctx)
        with suppress(AppendConflictError):  # another attempt of this very call has started it
            await self._service().jobs.start(recipe.bind(args), Options(principal=ctx.principal, job=job))
        ctx.progress(0, None, f"{job} has started")
        await self._wait(job)
        return await self._status(job)

    async def _job_of(self, ctx: CallContext) -> str:
        """The job that every attempt of this call means, whichever is first to start it.

        It bears the digits of the identifier under which the call was announced first, which is on record and sorts by
        time, as those of other jobs do.
        """
        first = ctx.invocation_id if ctx.attempt == 1 else await self._announced(ctx)
        return f"{KIND}_{first.rpartition('_')[2]}"

    async def _announced(self, ctx: CallContext) -> str:
        """Under which identifier the call was announced first."""
        for event in await self._journal.read(ctx.stream):
            announced = decode(event.kind, event.data) if event.kind == ToolInvocationStarted.KIND else None
            if isinstance(announced, ToolInvocationStarted) and announced.idempotency_key == ctx.idempotency_key:
                return announced.invocation_id
        return ctx.invocation_id

    async def _own(self, job: str, principal: str) -> str:
        """The job, if it is the caller's. Raises NotFoundError, which tells nothing of others."""
        with suppress(NotFoundError):
            if (await self._service().jobs.view(job)).principal == principal:
                return job
        raise NotFoundError(f"you have no job {job!r:.80}", code=Code.JOB_NOT_FOUND)

    async def _wait(self, job: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                async for _ in self._service().streams.follow(stream_of(job)):
                    pass

    async def _status(self, job: str) -> dict[str, Any]:
        service = self._service()
        view = await service.jobs.view(job)
        status: dict[str, Any] = {"job": job, "state": view.row.state}
        if view.row.state == "completed":
            status["result"] = view.result
        if view.state == "failed":
            status["error"] = to_builtins(view.error)
        if view.row.state not in ENDED and (questions := await service.confirmations.pending(job)):
            status["questions"] = [
                {"confirmation": each.confirmation, "tool": each.tool, "question": each.question} for each in questions
            ]
        return status


def _meta(name: str, recipe: Recipe[..., Any]) -> ToolMeta:
    told = " ".join((recipe.__doc__ or "").partition("\n\n")[0].split()) or f"Runs the recipe {recipe.name}."
    try:
        schema, withheld = hints.read(recipe.function, leading=1).input_schema, ""
    except SchemaError as error:
        schema, withheld = None, f"{error.message}. {error.remedy}"
    return ToolMeta(
        name=name,
        provider_id=PROVIDER_ID,
        description=f"{told} Starts a job; one that takes longer is looked at with job.result.",
        input_schema=schema,
        output_schema=_STATUS,
        capability_level=Level.L1,
        risk_level=Risk.WRITE,
        idempotent=True,
        version=recipe.execution_version,
        withheld=withheld,
    )


def _handle(name: str, description: str, *, writes: bool = False) -> ToolMeta:
    properties: dict[str, Any] = {"job": _JOB}
    if writes:
        properties["reason"] = {"type": "string"}
    return ToolMeta(
        name=name,
        provider_id=PROVIDER_ID,
        description=description,
        input_schema={"type": "object", "properties": properties, "required": ["job"]},
        output_schema=_STATUS,
        capability_level=Level.L1 if writes else Level.L0,
        risk_level=Risk.WRITE if writes else Risk.READ_ONLY,
        side_effects=writes,
        idempotent=writes,
        requires_confirm=False,
    )


_HANDLES: Final = (
    _handle("job.status", "Tells where one of your jobs stands."),
    _handle("job.result", "Waits a while for the end of one of your jobs, and gives its result."),
    _handle("job.cancel", "Asks one of your jobs to stop.", writes=True),
)


def _outcome_code(code: Code) -> Code | None:
    """The outcome's own code where the error's says more than that the tool failed."""
    return Code.INVALID_TOOL_ARGS if code is Code.INVALID_INPUT else None
