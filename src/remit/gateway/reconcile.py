"""The outcome of an announced call whose end was not recorded (rule 3)? Its provider may be able to tell."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.gateway.context import context_again
from remit.gateway.outcome import Outcome
from remit.gateway.result import Results, StepOutcome, events_of, words
from remit.redact import line
from remit.tools.catalog import ResolveError
from remit.tools.provider import Reconciles

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.journal.kinds import ToolInvocationStarted
    from remit.journal.writer import StreamWriter
    from remit.tools.catalog import Tool

_log: Final = logging.getLogger("remit.gateway")

Verdict = Outcome | Literal["never", "unknown"]
"""The recorded outcome; or that it certainly did not happen; or that it is unknown."""


class Reconciler:
    """Asks providers."""

    def __init__(self, services: Services) -> None:
        self._catalog = services.catalog
        self._journal = services.journal
        self._results = Results(services.limits, services.journal.clock, services.schema_gate)

    async def ask(self, started: ToolInvocationStarted, writer: StreamWriter) -> Verdict:
        """What the provider knows of the call; an outcome is recorded."""
        tool = await self._tool(started)
        if tool is None or not isinstance(tool.provider, Reconciles):
            return "unknown"
        encoded = await self._journal.value(started.args, started.args_blob)
        args: dict[str, Any] = msgspec.json.decode(encoded) if encoded is not None else {}
        timeout = tool.meta.timeout_ms / 1000
        context = context_again(started, writer.stream, timeout_s=timeout, now=self._journal.clock.now())
        try:
            async with asyncio.timeout(timeout):
                found = await tool.provider.reconcile(started.tool_name, args, context)
        except Exception as error:  # noqa: BLE001 - whatever it raises, it does not tell
            _log.info("%s cannot tell the outcome of %s: %s", tool.meta.name, started.invocation_id, line(words(error)))
            return "unknown"
        return "never" if found is None else await self._record(started, writer, tool, found)

    async def _tool(self, started: ToolInvocationStarted) -> Tool | None:
        """The tool that was called, if its provider still offers it: what another one says proves nothing."""
        try:
            tool, _ = await self._catalog.resolve(started.tool_name, {})
        except ResolveError:
            return None
        same = tool.meta.name == started.tool_name and tool.meta.provider_id == started.provider_id
        return tool if same else None

    async def _record(self, started: ToolInvocationStarted, writer: StreamWriter, tool: Tool, found: object) -> Outcome:
        checked = self._results.check(tool, found)
        outcome = checked.failure or Outcome(status="ok", value=checked.value, evidence=checked.kept.items)
        outcome = msgspec.structs.replace(outcome, invocation_id=started.invocation_id)
        happened: StepOutcome = "side_effect_committed" if tool.meta.side_effects else "pure"
        events, blobs = events_of(
            outcome,
            checked,
            invocation_id=started.invocation_id,
            step=started.step,
            step_outcome=happened if outcome.ok else "permanent_failure",
            tool=tool,
            by=tool.meta.provider_id,
        )
        await self._journal.append(writer, *events, synced=False, blobs=blobs)
        return outcome
