"""What the gateway counts of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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


_Cells = tuple[list[float], Callable[[float], None]]
"""The number of calls, and what takes their durations."""


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

        self._cells: dict[tuple[str, str, Code | None], _Cells] = {}
        """What was counted in before; as many as there are tools and codes."""

    def end(self, call: Call, outcome: Outcome) -> None:
        """A call was answered."""
        key = *_labels(call), outcome.code
        calls, seconds = self._cells.get(key) or self._new(*key)
        calls[0] += 1
        if outcome.duration_us:
            seconds(outcome.duration_us / 1_000_000)

    def _new(self, tool: str, provider: str, code: Code | None) -> _Cells:
        calls = self._calls.cell(tool, provider, OK if code is None else code.name)
        cells = self._cells[tool, provider, code] = calls, self._seconds.taker(tool, provider)
        return cells

    def broken(self, call: Call, error: BaseException) -> None:
        """A call was cancelled by its caller, or could not be recorded."""
        code = Code.CALL_CANCELLED if isinstance(error, asyncio.CancelledError) else getattr(error, "code", None)
        self._calls.add(*_labels(call), code.name if isinstance(code, Code) else Code.UNHANDLED_EXCEPTION.name)


def _labels(call: Call) -> tuple[str, str]:
    try:
        meta = call.tool.meta
    except AttributeError:  # a refused call may have come no further than its name
        return UNKNOWN, UNKNOWN
    return meta.name, meta.provider_id
