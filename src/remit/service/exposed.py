"""The recipes that clients may start, as the provider of jobs needs them (providers/jobs.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from remit.errors import AppendConflictError, NotFoundError, SchemaError
from remit.jobs.state import ENDED, stream_of
from remit.journal.kinds import ToolInvocationStarted, decode
from remit.service.options import Options
from remit.tools import hints
from remit.tools.jobs import Offer

if TYPE_CHECKING:
    from remit.jobs.recipe import Recipe
    from remit.service.service import Service
    from remit.tools.provider import CallContext


class ExposedJobs:
    """Recipes whose names fit a pattern, and the jobs that run them."""

    def __init__(self, service: Service, patterns: Sequence[str], untrusted: Sequence[str] = ()) -> None:
        """Offer the recipes of `service` whose names fit one of `patterns`; the input of `untrusted` ones is that."""
        self._service = service
        self._patterns = patterns
        self._untrusted = untrusted

    def offers(self) -> Sequence[Offer]:
        """The recipes that clients may start."""
        if not self._patterns:
            return []  # no recipe is imported to find that out
        recipes: Iterable[Recipe[..., Any]] = self._service.recipes.registry.all()
        return [self._offered(each) for each in recipes if any(fnmatchcase(each.name, one) for one in self._patterns)]

    def _offered(self, recipe: Recipe[..., Any]) -> Offer:
        told = " ".join((recipe.__doc__ or "").partition("\n\n")[0].split())
        try:
            schema, withheld = hints.read(recipe.function, leading=1).input_schema, ""
        except SchemaError as error:
            schema, withheld = None, f"{error.message}. {error.remedy}"
        return Offer(
            recipe=recipe.name,
            description=told or f"Runs the recipe {recipe.name}.",
            version=recipe.execution_version,
            input_schema=schema,
            withheld=withheld,
        )

    async def first_invocation(self, ctx: CallContext) -> str:
        """The identifier under which a call was announced first."""
        for event in await self._service.streams.events(ctx.stream):
            announced = decode(event.kind, event.data) if event.kind == ToolInvocationStarted.KIND else None
            if isinstance(announced, ToolInvocationStarted) and announced.idempotency_key == ctx.idempotency_key:
                return announced.invocation_id
        return ctx.invocation_id

    async def start(self, recipe: str, args: dict[str, Any], *, job: str, principal: str, untrusted: bool) -> None:
        """Start a job of this identifier, unless another attempt of the call has."""
        untrusted = untrusted or any(fnmatchcase(recipe, pattern) for pattern in self._untrusted)
        with suppress(AppendConflictError):
            bound = self._service.recipes.registry.get(recipe).bind(args)
            await self._service.jobs.start(bound, Options(principal=principal, job=job, untrusted=untrusted))

    async def state(self, job: str, principal: str | None = None) -> str:
        """Where a job stands; empty if it does not exist, or is not the principal's."""
        try:
            if principal is not None and (await self._service.jobs.view(job)).principal != principal:
                return ""
            return (await self._service.jobs.row(job)).state
        except NotFoundError:
            return ""

    async def status(self, job: str) -> dict[str, Any]:
        """State, result or error, and open questions. Raises NotFoundError."""
        view = await self._service.jobs.view(job)
        status: dict[str, Any] = {"job": job, "state": view.state}
        if view.state == "completed":
            status["result"] = view.result
        if view.state == "failed":
            status["error"] = to_builtins(view.error)
        if view.state not in ENDED and (questions := await self._service.confirmations.pending(job)):
            status["questions"] = [
                {"confirmation": each.confirmation, "tool": each.tool, "question": each.question} for each in questions
            ]
        return status

    async def ended(self, job: str) -> None:
        """Wait until a job has ended."""
        async for _ in self._service.streams.follow(stream_of(job)):
            pass

    async def cancel(self, job: str, *, by: str, reason: str) -> None:
        """Ask a job to stop. Raises StateError if it has ended."""
        await self._service.jobs.cancel(job, by=by, reason=reason)
