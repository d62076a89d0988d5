"""A scripted provider that stands for an MCP server: its tools are worded by somebody else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from remit.providers.mcp.results import result_of
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext, ToolResult

Answer = Callable[[dict[str, Any], CallContext], Awaitable[dict[str, Any]]]


def offered(definition: dict[str, Any], **given: Any) -> ToolMeta:
    """A tool that only reads, as the catalog knows a server's."""
    return ToolMeta(
        name=f"mcp.far.{definition['name']}",
        provider_id="mcp_far",
        description=definition.get("description", ""),
        input_schema=definition.get("inputSchema"),
        output_schema=definition.get("outputSchema"),
        definition=definition,
        **{
            "capability_level": Level.L0,
            "risk_level": Risk.READ_ONLY,
            "side_effects": False,
            "requires_confirm": False,
            **given,
        },
    )


class Upstream:
    """The server `far`: each tool answers with a raw result."""

    provider_id = "mcp_far"

    def __init__(self, *tools: ToolMeta, answer: Answer | None = None) -> None:
        self.tools: list[ToolMeta] = list(tools)
        self._answer = answer
        self._changed: Callable[[], None] | None = None
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def change(self, *tools: ToolMeta) -> None:
        """Offer something else from now on."""
        self.tools = list(tools)
        assert self._changed is not None
        self._changed()

    async def list_tools(self) -> Sequence[ToolMeta]:
        return list(self.tools)

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self.calls.append((name, args))
        raw = await self._answer(args, ctx) if self._answer else {"content": [{"type": "text", "text": "far"}]}
        return result_of(raw, source=name, now=ctx.now)

    async def close(self) -> None:
        """Nothing is held."""
