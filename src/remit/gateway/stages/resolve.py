"""Resolve: the tool behind the name.

Ready: are the dependencies there that the tool requires?

ResolveModel: the model behind the name, the tools that it is offered, and the exact request.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from remit.codes import Code
from remit.errors import UsageError
from remit.gateway.call import Call, EarlierAttempt, Proceed
from remit.gateway.model_request import ModelAttempt, ModelRequest, model_tool
from remit.gateway.outcome import Outcome, in_doubt, refused
from remit.gateway.readiness import named
from remit.models.faults import ModelFault
from remit.models.prompt import Ask, OfferedTools, Sampling, ToolSpec, toolset_of
from remit.policy.decision import Caller, Query
from remit.tools.catalog import ResolveError, suggestion
from remit.tools.migration import LIMIT_S

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.models.port import Model


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
        call.stage = "resolve"
        arguments: object = call.args
        if not isinstance(arguments, dict):
            reason = f"arguments must be an object, not {type(arguments).__name__}"
            return refused(Code.INVALID_TOOL_ARGS, f"{call.request.tool}: {reason}", "Pass them by name.")
        tool = self._catalog.at_hand(call.request.tool)
        if tool is not None:
            call.tool = tool
        else:
            try:
                call.tool, args = await self._catalog.resolve(call.request.tool, call.args)
            except ResolveError as error:
                if error.code is Code.UNKNOWN_TOOL:
                    return await self._unknown(call, error)
                return refused(error.code, error.reason, error.remedy)
            if args is not call.args:
                call.take(args)
        if call.request.earlier is not None:
            try:
                await self._repeat(call, call.request.earlier)
            except UsageError as error:
                _log.warning("%s step %s: %s", call.writer.stream, call.request.step, error.message)
                return refused(error.code, error.message, error.remedy)
        before, meta = call.request.repeats, call.tool.meta
        if before and meta.side_effects and not (meta.idempotent and meta.provider_id == before):
            reason = f"{meta.name} has changed since {before} was called, so the call cannot be repeated safely"
            return in_doubt(reason, "Find out whether the call took effect.")
        return await proceed(call)

    async def _repeat(self, call: Call, earlier: EarlierAttempt) -> None:
        """Take the arguments of an earlier attempt, in today's form. Raises UsageError if their migration fails."""
        meta = call.tool.meta
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
        reason = f"{error.reason}; the tool may need {named(missing)}"
        remedy = "Start the missing dependencies, then try again. `remit doctor` shows more."
        return refused(Code.MCP_REQUIRED_UNAVAILABLE, reason, remedy)


class Ready:
    """Refuses a call early whose dependency is known to be down, before anyone is asked to approve it."""

    def __init__(self, services: Services) -> None:
        self._readiness = services.readiness

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Refuse with MCP_REQUIRED_UNAVAILABLE, naming what is missing."""
        call.stage = "ready"
        required = call.tool.meta.requires
        return self._if_ready(required, call, proceed) if required else proceed(call)

    async def _if_ready(self, required: Sequence[str], call: Call, proceed: Proceed) -> Outcome:
        missing = await self._readiness.missing(required)
        if missing:
            remedy = "Start the missing dependencies, then try again. `remit doctor` shows more."
            return refused(Code.MCP_REQUIRED_UNAVAILABLE, f"{call.tool.meta.name} needs {named(missing)}", remedy)
        return await proceed(call)


_PATIENCE_S: Final = 10.0
"""Seconds that providers still being listed are waited for."""
_KEPT: Final = 64
_WILD: Final = frozenset("*?[")


class ResolveModel:
    """Finds the model, and writes the request."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._toolsets: dict[tuple[str, str, tuple[str, ...], str, Caller], OfferedTools] = {}

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Set `tool`, the facts that stand for arguments, and what will be sent.

        Refuse with MODEL_UNAVAILABLE or UNKNOWN_TOOL.
        """
        call.stage = "resolve_model"
        asking = _asking(call)
        request = asking.request
        tools = await self._offered(call, request)
        missing = _unknown(request.tools, tools)
        if missing:
            return await self._missing(f"no tool is named {missing}", missing)
        if not request.thread.answers:
            for pattern in request.tools:  # later a server may be away for a while, and the agent goes on without it
                if await self._matches_none(pattern):
                    return await self._missing(f"no tool matches {pattern}", pattern)
        refusal = self._prepare(asking, tools)
        if refusal is not None:
            return refusal
        call.tool = model_tool(asking, asking.model.name)
        call.take(asking.facts())
        return await proceed(call)

    async def _matches_none(self, pattern: str) -> bool:
        """Return whether a pattern is one that no tool of the catalog has; `*` asks for whatever there is."""
        if pattern == "*" or not _WILD & set(pattern):
            return False
        tools = await self._services.catalog.tools(_PATIENCE_S)
        return not any(fnmatchcase(tool.meta.name, pattern) for tool in tools)

    async def _missing(self, reason: str, name: str) -> Outcome:
        names = [tool.meta.name for tool in await self._services.catalog.tools(_PATIENCE_S)]
        if _WILD & set(name):
            names = [f"{pattern.rpartition('.')[0]}.*" for pattern in names]
        return refused(Code.UNKNOWN_TOOL, reason, suggestion(name, names))

    def _prepare(self, asking: ModelAttempt, tools: OfferedTools) -> Outcome | None:
        request = asking.request
        try:
            asking.model = request.via or self._first(asking)
        except UsageError as error:
            reason = "; ".join([*asking.passed.values(), error.message])
            return refused(Code.MODEL_UNAVAILABLE, reason, error.remedy)
        ask = Ask(
            thread=request.thread,
            tools=tools,
            choice=request.choice,
            sampling=self._sampling(request),
            output=request.output,
            id=_prefix(request),
            attempt=request.failed,
        )
        try:
            asking.sending = asking.model.prepare(ask)
        except ModelFault as fault:
            return refused(Code.MODEL_UNAVAILABLE, fault.reason, "Ask something else.")
        asking.prompt_hash = asking.sending.ask.prompt.hash
        return None

    def _sampling(self, request: ModelRequest) -> Sampling:
        """Return the form of answer that the question wants; where it is silent, that of the settings."""
        cache, sampling = self._services.cache, request.sampling
        return replace(sampling, cache=cache) if cache is not None and sampling.cache is None else sampling

    def _first(self, asking: ModelAttempt) -> Model:
        """Return the model that is wanted, or of its chain the first after it that can be asked. Raise UsageError."""
        request = asking.request
        name = request.model or self._services.default_model
        question = request.wanted or name
        while True:
            try:
                return self._model(name)
            except UsageError as error:
                following = self._services.fallbacks.past(question, request.recipe, name) if request.job else ""
                if not following:
                    raise
                asking.passed[name] = error.message
                name = following

    def _model(self, name: str) -> Model:
        if self._services.models is None:
            raise UsageError("this process has no models", remedy="Run it in a process that has.")
        return self._services.models.get(name)

    async def _offered(self, call: Call, request: ModelRequest) -> OfferedTools:
        """The tools that the request names and the caller may use, by name."""
        catalog, policy = self._services.catalog, call.policy
        extra = toolset_of(request.extra)
        if not request.tools:
            return extra
        tools, brought = await catalog.tools(_PATIENCE_S), {spec.name for spec in request.extra}
        caller = Caller(
            principal=request.principal, kind=request.caller, recipe=request.recipe, stream=call.writer.stream
        )
        key = (catalog.version, policy.hash, request.tools, extra.digest, caller)
        toolset = self._toolsets.get(key)
        if toolset is None:
            offered = [
                ToolSpec(
                    name=tool.wire_name,
                    description=tool.meta.description,
                    schema=tool.meta.input_schema or {"type": "object", "properties": {}},
                )
                for tool in sorted(tools, key=lambda tool: tool.meta.name)
                if tool.quarantined is None
                and tool.wire_name not in brought  # the caller brings it itself
                and any(fnmatchcase(tool.meta.name, pattern) for pattern in request.tools)
                and not policy.forbids(tool.meta, tool.key, caller)
            ]
            toolset = self._toolsets[key] = toolset_of((*offered, *request.extra))
            if len(self._toolsets) > _KEPT:
                del self._toolsets[next(iter(self._toolsets))]
        return toolset


def _asking(call: Call) -> ModelAttempt:
    if call.asking is None:
        msg = "a stage of model calls met another call"
        raise AssertionError(msg)
    return call.asking


def _prefix(request: ModelRequest) -> str:
    """Return the beginning of the answer's call identifiers: the step, unless another job's calls began with it too."""
    if not request.thread.has_calls_of(request.step):
        return request.step
    return f"{request.thread.replies}/{request.step}"


def _unknown(patterns: tuple[str, ...], tools: OfferedTools) -> str:
    """A plain name that no tool on offer has."""
    names = {spec.name for spec in tools.specs}
    plain = (pattern for pattern in patterns if not _WILD & set(pattern))
    return next((pattern for pattern in plain if pattern.replace(".", "__") not in names), "")
