"""The tools of a runner: a server of Remit that this process calls them on, over HTTPS with a token.

Both gates judge a call: this one for the caller, the runner's for the principal of the token. Each attempt has an
idempotency key of its own, under which the runner makes the call once: a request that was lost is sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from remit.client.connection import ServerConnection
from remit.clock import Clock
from remit.codes import Code
from remit.errors import NotSentError, ProviderError, RemitError, ServerError
from remit.providers.runners.settings import RunnerEntry
from remit.record.outcome import OutcomeView
from remit.record.views import ToolView
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.names import wire_name
from remit.tools.provider import CallContext, ToolResult

_AGAIN: Final = frozenset({Code.SERVER_STOPPING, Code.TOO_MANY_REQUESTS, Code.JOURNAL_BUSY})
"""Codes with which a server asks for the same request once more."""
_PAUSE_S: Final = 1.0
_RISKS: Final = {Level.L0: Risk.READ_ONLY, Level.L1: Risk.WRITE}


class RunnerProvider:
    """Offers what one runner serves."""

    def __init__(self, entry: RunnerEntry, clock: Clock) -> None:
        self._entry = entry
        self._clock = clock
        self._connection = ServerConnection(entry.url, entry.token, clock=clock)
        self._opening = asyncio.Lock()
        self._open = False
        self._closed = False

    @property
    def provider_id(self) -> str:
        return self._entry.provider_id

    @property
    def reserves(self) -> Sequence[str]:
        return self._entry.serves

    async def list_tools(self) -> Sequence[ToolMeta]:
        views: list[ToolView] = await self._ask("tools.page")
        return [_meta(view, self.provider_id) for view in views if self._serves(view)]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        body = {"tool_name": wire_name(name), "args": args, "timeout_ms": max(1, round(ctx.timeout_s * 1_000))}
        key = f"{ctx.idempotency_key}.{ctx.attempt}"
        outcome: OutcomeView = await self._ask(
            "tools.execute", body=body, answer=OutcomeView, key=key, held_s=ctx.timeout_s
        )
        if outcome.status == "ok":
            return ToolResult(value=outcome.value)
        raise _failure(outcome, name, self._entry.name)

    async def close(self) -> None:
        self._closed = True
        async with self._opening:
            if self._open:
                self._open = False
                await self._connection.__aexit__(None, None, None)

    def _serves(self, view: ToolView) -> bool:
        named = any(fnmatchcase(view.name, pattern) for pattern in self._entry.serves)
        return named and not view.quarantined and view.policy != "denied"

    async def _ask(self, operation: str, **request: Any) -> Any:
        """Return an answer of the runner; one that stops asks for the request again, and it is one call by its key."""
        while True:
            try:
                return await (await self._connected()).ask(operation, **request)
            except ServerError as error:
                cause = Code.SpawnFailed if isinstance(error, NotSentError) else Code.ConnectionError
                raise ProviderError(error.message, cause=cause) from error
            except RemitError as error:
                if error.code not in _AGAIN:
                    raise ProviderError(f"{error.code.name}: {error.message}", cause=Code.ProviderClosed) from error
            await self._clock.sleep(_PAUSE_S)

    async def _connected(self) -> ServerConnection:
        async with self._opening:
            if self._closed:
                raise ProviderError("the runner is closed", cause=Code.ProviderClosed)
            if not self._open:
                await self._connection.__aenter__()
                self._open = True
        return self._connection


def _meta(view: ToolView, provider_id: str) -> ToolMeta:
    level = Level[view.capability_level]
    return ToolMeta(
        name=view.name,
        provider_id=provider_id,
        description=view.description,
        input_schema=view.input_schema,
        output_schema=view.output_schema,
        capability_level=level,
        risk_level=_RISKS.get(level, Risk.UNKNOWN),
        side_effects=view.side_effects,
        idempotent=view.idempotent,
        requires_confirm=view.requires_confirm,
        timeout_ms=view.timeout_ms,
        version=view.version,
        isolation=view.isolation,
    )


def _failure(outcome: OutcomeView, tool: str, runner: str) -> ProviderError:
    """A call that the runner refused was not made; one that waits for a person there can wait only here."""
    code = Code.__members__.get(outcome.code)
    cause = Code.__members__.get(outcome.cause)
    if outcome.uncertain:
        code = Code.OUTCOME_UNKNOWN
    elif outcome.status == "pending":
        reason = f"a rule of the runner {runner} asks a person; let its policy allow the call, and ask here"
        return ProviderError(reason, code=Code.POLICY_DENIED, cause=None)
    reason = outcome.reason.removeprefix(f"{tool}: ")  # the gate here names the tool itself
    again_ms = outcome.again_ms
    if again_ms is not None:
        reason = f"{reason}, at the runner {runner}: again in {-(-again_ms // 1_000)} s"
    return ProviderError(
        reason, code=code, cause=cause, detail=outcome.detail, effect=outcome.effect, again_ms=again_ms
    )
