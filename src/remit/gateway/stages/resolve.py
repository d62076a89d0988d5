"""Resolve: the tool behind the name."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.errors import UsageError
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome, in_doubt, refused
from remit.gateway.readiness import named
from remit.policy.decision import Caller, Query
from remit.tools.catalog import ResolveError
from remit.tools.migration import LIMIT_S

if TYPE_CHECKING:
    from remit.gateway.services import Services

_log: Final = logging.getLogger("remit.gateway")


class Resolve:
    """Finds the tool a full name, key or model-facing name means."""

    def __init__(self, services: Services) -> None:
        self._catalog = services.catalog
        self._readiness = services.readiness
        self._migrations = services.migrations

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Set `tool` and the arguments meant for it.

        Refuse with UNKNOWN_TOOL, INVALID_TOOL_STEP, TOOL_QUARANTINED, INVALID_TOOL_ARGS or MCP_REQUIRED_UNAVAILABLE.
        """
        given: object = call.args
        if not isinstance(given, dict):
            why = f"arguments must be an object, not {type(given).__name__}"
            return refused(Code.INVALID_TOOL_ARGS, f"{call.request.tool}: {why}", "Pass them by name.")
        try:
            call.tool, args = await self._catalog.resolve(call.request.tool, call.args)
        except ResolveError as error:
            if error.code is Code.UNKNOWN_TOOL:
                return await self._unknown(call, error)
            return refused(error.code, error.reason, error.remedy)
        if args is not call.args:
            call.take(args)
        try:
            await self._repeat(call)
        except UsageError as error:
            _log.warning("%s step %s: %s", call.writer.stream, call.request.step, error.message)
            return refused(error.code, error.message, error.remedy)
        before, meta = call.request.repeats, call.tool.meta
        if before and meta.side_effects and not (meta.idempotent and meta.provider_id == before):
            why = f"{meta.name} has changed since {before} was called, so the call cannot be repeated safely"
            return in_doubt(why, "Find out whether the call took effect.")
        return await proceed(call)

    async def _repeat(self, call: Call) -> None:
        """Take the arguments of an earlier attempt, in today's form. Raises UsageError if their migration fails."""
        earlier, meta = call.request.earlier, call.tool.meta
        if earlier is None:
            return
        call.take(earlier.args)
        call.kept_key = earlier.idempotency_key
        if (earlier.tool_version, earlier.schema) == (meta.version, call.tool.input.hash):
            return
        migrate = self._migrations.find(meta.name, earlier.tool_version, earlier.schema)
        if migrate is not None:
            call.take(await migrate.within(call.args, LIMIT_S))

    async def _unknown(self, call: Call, error: ResolveError) -> Outcome:
        """Denied by default; but if something that it may need is down, it may be known once that is up."""
        request = call.request
        caller = Caller(
            principal=request.principal, kind=request.caller, recipe=request.recipe, stream=call.writer.stream
        )
        call.rule_id = call.policy.decide(Query(tool=None, key=request.tool, args=call.args, caller=caller)).rule_id
        missing = await self._readiness.missing_for(request.tool)
        if not missing:
            return refused(error.code, error.reason, error.remedy)
        why = f"{error.reason}; the tool may need {named(missing)}"
        remedy = "Start the missing dependencies, then try again. `remit doctor` shows more."
        return refused(Code.MCP_REQUIRED_UNAVAILABLE, why, remedy)
