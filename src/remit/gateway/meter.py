"""What the gateway counts of calls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from remit.codes import Code

if TYPE_CHECKING:
    from remit.gateway.call import Call
    from remit.gateway.outcome import Outcome
    from remit.metrics.registry import Registry

OK: Final = "ok"
"""The label of a call that did what was asked, in place of a code."""
UNKNOWN: Final = "unknown"
"""The label of a tool that no provider offers: its name is the caller's, and never becomes one."""


class Meter:
    """Counts calls by tool, provider and code, and how long they took at their providers."""

    def __init__(self, metrics: Registry) -> None:
        """Count in `metrics`."""
        self._calls = metrics.counter(
            "tool_calls_total", "Calls that left the gateway, with their code or ok.", "tool", "provider", "code"
        )
        self._seconds = metrics.histogram(
            "tool_call_seconds", "Seconds that a call took at its provider.", "tool", "provider"
        )
        self.running = 0
        """Calls that are in the gateway; it adds them itself."""
        metrics.gauge("tool_calls_running", "Calls that are in the gateway now.", lambda: self.running)

    def end(self, call: Call, outcome: Outcome) -> None:
        """A call was answered."""
        tool, provider = _labels(call)
        self._calls.add(tool, provider, OK if outcome.code is None else outcome.code.name)
        if outcome.duration_us:
            self._seconds.observe(outcome.duration_us / 1_000_000, tool, provider)

    def broken(self, call: Call, error: BaseException) -> None:
        """A call was cancelled by its caller, or could not be recorded."""
        code = Code.CALL_CANCELLED if isinstance(error, asyncio.CancelledError) else getattr(error, "code", None)
        self._calls.add(*_labels(call), code.name if isinstance(code, Code) else Code.UNHANDLED_EXCEPTION.name)


def _labels(call: Call) -> tuple[str, str]:
    tool = getattr(call, "tool", None)  # a refused call may have come no further than its name
    return (UNKNOWN, UNKNOWN) if tool is None else (tool.meta.name, tool.meta.provider_id)
