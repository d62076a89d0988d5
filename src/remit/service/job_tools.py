"""Recipes as tools: a client starts a job, is given its result if that comes soon, and a handle if it does not.

    recipe.<name>     starts a job; waits a while for its end
    job.status        where a job stands, and what it asks people
    job.result        its result, once it has one
    job.cancel        asks it to stop

A client sees only its own jobs. What the recipe does passes the gateway as in any other job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import msgspec

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
from remit.jobs.state import ENDED, stream_of
from remit.journal.kinds import ToolInvocationStarted, decode
from remit.service.options import Options
from remit.tools import hints
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext, Preview, ToolResult, Toolset

if TYPE_CHECKING:
    from remit.jobs.recipe import Recipe
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


class JobsProvider(Toolset):
    """The recipes that clients may start, and the jobs that run them.

    The recipes of `service` whose names fit one of `patterns` are offered; the input of `untrusted` ones is that.
    Raises NameInvalidError if two recipes would have one name.
    """

    def __init__(self, service: Service, patterns: Sequence[str], untrusted: Sequence[str] = ()) -> None:
        # Without patterns no recipe is imported to find out that none fits.
        recipes: Iterable[Recipe[..., Any]] = service.recipes.registry.all() if patterns else ()
        self._service = service
        self._untrusted = untrusted
        self._recipes: dict[str, Recipe[..., Any]] = {}
        for each in recipes:
            name = f"recipe.{each.name.replace('.', '_')}"
            if not any(fnmatchcase(each.name, pattern) for pattern in patterns):
                continue
            if self._recipes.setdefault(name, each) is not each:
                msg = f"the recipes {each.name} and {self._recipes[name].name} would both be the tool {name}"
                raise NameInvalidError(msg, remedy="Rename one of them, or expose only one: mcp.expose.")
        offered = [_meta(name, each) for name, each in sorted(self._recipes.items())]
        super().__init__(PROVIDER_ID, [*offered, *_HANDLES] if offered else [])

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self._require(name)
        try:
            if name in self._recipes:
                return ToolResult(await self._start(self._recipes[name], args, ctx))
            job = await self._own(args["job"], ctx.principal)
            if name == "job.cancel":
                await self._service.jobs.cancel(job, by=ctx.principal, reason=args.get("reason", ""))
            elif name == "job.result":
                await self._wait(job)
            return ToolResult(await self._status(job))
        except (NotFoundError, StateError, UsageError) as error:
            reason = f"{error.message} {error.remedy}".strip()
            raise ProviderError(reason, cause=Code.InvalidInput, code=_outcome_code(error.code)) from error

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:
        if name in self._recipes:
            job = await self._job_of(ctx)
            done = bool(await self._state(job))
        else:
            job = await self._own(args["job"], ctx.principal)
            done = await self._state(job) == "cancelled"
        return ToolResult(await self._status(job)) if done else None

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Say which recipe would run, or where the job stands that would be stopped."""
        if name in self._recipes:
            recipe = self._recipes[name]
            return Preview(what=f"Starts a job of the recipe {recipe.name}, version {recipe.execution_version}.")
        if name == "job.cancel":
            state = await self._state(args["job"])
            return Preview(what=f"Asks {args['job']} to stop; it is {state or 'not there'}.")
        return None

    # --- jobs

    async def _start(self, recipe: Recipe[..., Any], args: dict[str, Any], ctx: CallContext) -> dict[str, Any]:
        job = await self._job_of(ctx)
        untrusted = ctx.untrusted or any(fnmatchcase(recipe.name, pattern) for pattern in self._untrusted)
        with suppress(AppendConflictError):  # another attempt of the call has
            options = Options(principal=ctx.principal, job=job, untrusted=untrusted)
            await self._service.jobs.start(recipe.bind(args), options)
        ctx.progress(0, None, f"{job} has started")
        await self._wait(job)
        return await self._status(job)

    async def _job_of(self, ctx: CallContext) -> str:
        """Return the job that every attempt of this call means, whichever is first to start it.

        It has the digits of the identifier under which the call was announced first, which is on record and sorts by
        time, as those of other jobs do.
        """
        first = ctx.invocation_id
        for event in await self._service.streams.events(ctx.stream) if ctx.attempt > 1 else ():
            announced = decode(event.kind, event.data) if event.kind == ToolInvocationStarted.KIND else None
            if isinstance(announced, ToolInvocationStarted) and announced.idempotency_key == ctx.idempotency_key:
                first = announced.invocation_id
                break
        return f"job_{first.rpartition('_')[2]}"

    async def _own(self, job: str, principal: str) -> str:
        """Return the job, if it is the caller's. Raise NotFoundError, which says nothing of others."""
        if not await self._state(job, principal):
            raise NotFoundError(f"you have no job {job!r:.80}", code=Code.JOB_NOT_FOUND)
        return job

    async def _state(self, job: str, principal: str | None = None) -> str:
        """Return where a job stands; empty if it does not exist, or is not the principal's."""
        try:
            if principal is not None and (await self._service.jobs.view(job)).principal != principal:
                return ""
            return (await self._service.jobs.row(job)).state
        except NotFoundError:
            return ""

    async def _status(self, job: str) -> dict[str, Any]:
        """Return state, result or error, and open questions. Raise NotFoundError."""
        view = await self._service.jobs.view(job)
        status: dict[str, Any] = {"job": job, "state": view.state}
        if view.state == "completed":
            status["result"] = view.result
        if view.state == "failed":
            status["error"] = msgspec.to_builtins(view.error)
        if view.state not in ENDED and (questions := await self._service.confirmations.pending(job)):
            status["questions"] = [
                {"confirmation": each.confirmation, "tool": each.tool, "question": each.question} for each in questions
            ]
        return status

    async def _wait(self, job: str) -> None:
        """Wait a while for the end of a job."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                async for _ in self._service.streams.follow(stream_of(job)):
                    pass


def _meta(name: str, recipe: Recipe[..., Any]) -> ToolMeta:
    summary = " ".join((recipe.__doc__ or "").partition("\n\n")[0].split()) or f"Runs the recipe {recipe.name}."
    try:
        schema, withheld = hints.read(recipe.function, leading=1).input_schema, ""
    except SchemaError as error:
        schema, withheld = None, f"{error.message}. {error.remedy}"
    return ToolMeta(
        name=name,
        provider_id=PROVIDER_ID,
        description=f"{summary} Starts a job; one that takes longer is looked at with job.result.",
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
