"""Providers of tools of ours: each tool is declared by the structs that it takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.shapes import struct_schema


def declare(
    name: str,
    description: str,
    takes: type[msgspec.Struct],
    gives: type[msgspec.Struct],
    *,
    provider: str,
    writes: bool = False,
    **more: Any,
) -> ToolMeta:
    """Return a tool that reads (L0) or `writes` and asks (L1), and may be repeated; `more` are fields that differ."""
    fields: dict[str, Any] = {
        "input_schema": struct_schema(takes),
        "output_schema": struct_schema(gives),
        "capability_level": Level.L1 if writes else Level.L0,
        "risk_level": Risk.WRITE if writes else Risk.READ_ONLY,
        "side_effects": writes,
        "idempotent": True,
        "requires_confirm": writes,
        "version": "1",
    }
    return ToolMeta(name=name, provider_id=provider, description=description, **(fields | more))


class Toolset:
    """A provider that lists its tools, and refuses calls once it is closed; what they do, a subclass says."""

    def __init__(self, provider_id: str, tools: Sequence[ToolMeta]) -> None:
        self._provider_id = provider_id
        self._tools = tuple(tools)
        self._closed = False

    @property
    def provider_id(self) -> str:
        return self._provider_id

    async def list_tools(self) -> Sequence[ToolMeta]:
        self._require_open()
        return self._tools

    async def close(self) -> None:
        """Refuse later calls; a subclass ends what it started."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise ProviderError(f"The provider {self._provider_id} has been closed.", cause=Code.ProviderClosed)

    def _require(self, name: str) -> None:
        """Raise ProviderError where the provider is closed, or has no such tool."""
        self._require_open()
        if all(tool.name != name for tool in self._tools):
            raise ProviderError(f"The provider {self._provider_id} has no tool {name!r}.", cause=Code.ToolNotFound)
