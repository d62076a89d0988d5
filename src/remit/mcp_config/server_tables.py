"""The `[[mcp.servers]]` tables of a remit.toml, changed as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from remit.mcp_config.array_tables import ArrayTables
from remit.settings.mcp import McpServer

_TABLES: Final = ArrayTables(("mcp", "servers"), McpServer.__struct_fields__)


def with_server(text: str, table: Mapping[str, Any]) -> str:
    """A remit.toml with one more server, the last of them. Raises UsageError if it cannot be written in there."""
    return _TABLES.added(text, table)


def names(text: str) -> list[str]:
    """The names of the servers in a remit.toml that can be read, in order."""
    return [table["name"] for table in _TABLES.read(text) if isinstance(table.get("name"), str)]


def without_server(text: str, name: str) -> str:
    """A remit.toml without the server of this name, whose comments between tables stay. Raises UsageError."""
    number = next(index for index, table in enumerate(_TABLES.read(text)) if table.get("name") == name)
    return _TABLES.removed(text, number, name)


def block(table: Mapping[str, Any]) -> str:
    """The table as TOML, its keys in the order of the documentation."""
    return _TABLES.block(table)
