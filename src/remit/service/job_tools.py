"""Recipes as tools: a client starts a job, is given its result if that comes soon, and a handle if it does not.

    recipe.<name>     starts a job; waits a while for its end
    job.status        where a job stands, and what it asks people
    job.result        its result, once it has one
    job.cancel        asks it to stop

A client sees only its own jobs. What the recipe does passes the gateway as in any other job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from remit.codes import Code
from remit.errors import NameInvalidError, NotFoundError, ProviderError, StateError, UsageError
from remit.tools.jobs import JobService, Offer
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext, Preview, ToolResult

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


class JobsProvider:
    """The provider of recipes that clients may start."""

    def __init__(self, jobs: JobService) -> None:
        """Offer what `jobs` offers. Raise NameInvalidError if two recipes would have one name."""
        self._jobs = jobs
        self._offers: dict[str, Offer] = {}
        for each in jobs.offers():
            name = f"recipe.{each.recipe.replace('.', '_')}"
            if self._offers.setdefault(name, each) is not each:
                msg = f"the recipes {each.recipe} and {self._offers[name].recipe} would both be the tool {name}"
                raise NameInvalidError(msg, remedy="Rename one of them, or expose only one: mcp.expose.")
        self._closed = False

    @property
    def provider_id(self) -> str:
        return PROVIDER_ID

    async def list_tools(self) -> Sequence[ToolMeta]:
        """One tool for each recipe, and three for its jobs; nothing if no recipe is offered."""
        if not self._offers:
            return []
        return [*(_meta(name, each) for name, each in sorted(self._offers.items())), *_HANDLES]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        if self._closed:
            raise ProviderError("jobs are no longer offered", cause=Code.ProviderClosed)
        try:
            if name in self._offers:
                return ToolResult(await self._start(self._offers[name], args, ctx))
            job = await self._own(args["job"], ctx.principal)
            if name == "job.cancel":
                await self._jobs.cancel(job, by=ctx.principal, reason=args.get("reason", ""))
            elif name == "job.result":
                await self._wait(job)
            return ToolResult(await self._jobs.status(job))
        except (NotFoundError, StateError, UsageError) as error:
            why = f"{error.message} {error.remedy}".strip()
            raise ProviderError(why, cause=Code.InvalidInput, code=_outcome_code(error.code)) from error

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:
        if name in self._offers:
            job = await self._job_of(ctx)
            done = bool(await self._jobs.state(job))
        else:
            job = await self._own(args["job"], ctx.principal)
            done = await self._jobs.state(job) == "cancelled"
        return ToolResult(await self._jobs.status(job)) if done else None

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Say which recipe would run, or where the job stands that would be stopped."""
        if name in self._offers:
            offer = self._offers[name]
            return Preview(what=f"Starts a job of the recipe {offer.recipe}, version {offer.version}.")
        if name == "job.cancel":
            state = await self._jobs.state(args["job"])
            return Preview(what=f"Asks {args['job']} to stop; it is {state or 'not there'}.")
        return None

    async def close(self) -> None:
        """Take no more calls; jobs go on."""
        self._closed = True

    # --- common

    async def _start(self, offer: Offer, args: dict[str, Any], ctx: CallContext) -> dict[str, Any]:
        job = await self._job_of(ctx)
        await self._jobs.start(offer.recipe, args, job=job, principal=ctx.principal, untrusted=ctx.untrusted)
        ctx.progress(0, None, f"{job} has started")
        await self._wait(job)
        return await self._jobs.status(job)

    async def _job_of(self, ctx: CallContext) -> str:
        """The job that every attempt of this call means, whichever is first to start it.

        It has the digits of the identifier under which the call was announced first, which is on record and sorts by
        time, as those of other jobs do.
        """
        first = ctx.invocation_id if ctx.attempt == 1 else await self._jobs.first_invocation(ctx)
        return f"job_{first.rpartition('_')[2]}"

    async def _own(self, job: str, principal: str) -> str:
        """The job, if it is the caller's. Raise NotFoundError, which says nothing of others."""
        if not await self._jobs.state(job, principal):
            raise NotFoundError(f"you have no job {job!r:.80}", code=Code.JOB_NOT_FOUND)
        return job

    async def _wait(self, job: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                await self._jobs.ended(job)


def _meta(name: str, offer: Offer) -> ToolMeta:
    return ToolMeta(
        name=name,
        provider_id=PROVIDER_ID,
        description=f"{offer.description} Starts a job; one that takes longer is looked at with job.result.",
        input_schema=offer.input_schema,
        output_schema=_STATUS,
        capability_level=Level.L1,
        risk_level=Risk.WRITE,
        idempotent=True,
        version=offer.version,
        withheld=offer.withheld,
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
