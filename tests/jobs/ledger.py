"""A provider that can be asked the outcome of a booking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remit import CallContext, ToolMeta, ToolResult
from remit.tools.meta import Level, Risk


class Ledger:
    """Books, and tells what it knows of the booking afterwards; how a booking goes is each test's own."""

    provider_id = "ledger"

    def __init__(self, known: ToolResult | None) -> None:
        self.known = known

    async def list_tools(self) -> Sequence[ToolMeta]:
        return [
            ToolMeta(
                name="ledger.book",
                provider_id="ledger",
                input_schema={"type": "object"},
                capability_level=Level.L1,
                risk_level=Risk.WRITE,
            )
        ]

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:
        """What it knows; None: it never happened."""
        return self.known

    async def close(self) -> None:
        """Nothing to close."""
