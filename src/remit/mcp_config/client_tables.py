"""The `[[clients]]` tables of a remit.toml, changed as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from remit.mcp_config.array_tables import ArrayTables
from remit.settings.clients import ClientTable

_TABLES: Final = ArrayTables(("clients",), ClientTable.__struct_fields__)


def with_client(text: str, table: Mapping[str, Any]) -> str:
    """A remit.toml with one more client, the last of them. Raises UsageError if it cannot be written in there."""
    return _TABLES.added(text, table)


def numbers(text: str, name: str) -> list[int]:
    """The places of the clients that go by a name: their `name`, or without one their principal."""
    return [
        number
        for number, table in enumerate(_TABLES.read(text))
        if (table.get("name") or table.get("principal")) == name
    ]


def without_client(text: str, number: int, name: str) -> str:
    """A remit.toml without one client, whose comments between tables stay. Raises UsageError."""
    return _TABLES.removed(text, number, name)
