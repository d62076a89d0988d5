"""An MCP client that may connect over HTTP, as the operator wrote it down."""

from __future__ import annotations

import msgspec

from remit.errors import SettingsError
from remit.settings.model import Settings


class McpClient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[mcp.clients]]` table."""

    principal: str
    """Who its calls are recorded and judged as; several clients may share one."""
    token: str
    """The bearer token it sends; `${NAME}` takes it from our own environment."""

    def __repr__(self) -> str:
        """Without the token."""
        return f"McpClient(principal={self.principal!r})"


def mcp_clients(settings: Settings) -> tuple[McpClient, ...]:
    """The clients that may connect over HTTP, their tokens as they were written: `expanded_client` replaces references.

    Raises SettingsError that names file, number and key, and never quotes a token.
    """
    source = settings.sources["mcp.clients"]
    found: dict[str, McpClient] = {}
    for number, table in enumerate(settings.mcp.clients, 1):
        where = f"{source}: mcp.clients number {number}"
        client = _client(table, where)
        if client.token in found:
            raise SettingsError(
                f"{where}: {client.principal} has the token of {found[client.token].principal}",
                remedy="Give every client a token of its own.",
            )
        found[client.token] = client
    return tuple(found.values())


def _client(table: dict[str, object], where: str) -> McpClient:
    fields = McpClient.__struct_fields__
    for key in table:
        if key not in fields:
            raise SettingsError(f"{where}: there is no key {key}", remedy=f"Its keys are {' and '.join(fields)}.")
    for key in fields:
        value = table.get(key)
        if not isinstance(value, str) or not value.strip():
            raise SettingsError(f"{where}: {key} must be a non-empty text", remedy=f"Write {key} = '…' in it.")
    return msgspec.convert(table, McpClient)
