"""The offer of a server, exactly as it worded it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.tools.pins import hash_of

if TYPE_CHECKING:
    from remit.providers.mcp.session import McpSession

MAX_TOOLS: Final = 2_000
"""Tools of one server; more are no catalog but an attack on it."""
MAX_PAGES: Final = 200
_MIRROR: Final = "x-mcp-header"
"""Marks an argument that goes in a header as well."""


class Listing(msgspec.Struct, frozen=True):
    """One answer to `tools/list`, all its pages."""

    tools: Mapping[str, dict[str, Any]]
    """The raw definitions by the server's own names, in its order."""
    refused: Mapping[str, str]
    """Names that cannot be told apart, with the reason."""
    hashes: Mapping[str, str]
    """Hashes of the definitions, by name."""
    mirrored: Mapping[str, Mapping[tuple[str, ...], str]]
    """Arguments that a server on HTTP wants in a header as well (2026-07-28), by tool and place."""

    def headers(self, name: str, args: Mapping[str, Any]) -> dict[str, str]:
        """Return what HTTP says of these arguments beside a call of the tool."""
        places = self.mirrored.get(name)
        if not places:
            return {}
        from mcp.shared.inbound import mcp_param_headers  # noqa: PLC0415 - half a second, for few servers

        return mcp_param_headers(places, args)


NOTHING: Final = Listing({}, {}, {}, {})


async def listing_of(session: McpSession) -> Listing:
    """Ask for all pages. Raises MCPError, or ProviderError for an answer that cannot be meant."""
    entries: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    mirrored: dict[str, Mapping[tuple[str, ...], str]] = {}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.ask("tools/list", {"cursor": cursor} if cursor else {})
        for place, entry in enumerate(_entries(page), start=len(entries) + 1):
            tool, name = _named(entry, place)
            if tool is not entry:
                refused[name] = "the server lists it without a name"
            elif entries.get(name, tool) != tool:
                refused[name] = "the server lists it twice"
            elif _MIRROR in str(tool.get("inputSchema")):
                mirrored[name], reason = _mirrored(tool["inputSchema"])
                if reason:
                    refused[name] = f"the server's definition is not valid: {reason}"
            entries[name] = tool
        if len(entries) > MAX_TOOLS:
            raise ProviderError(f"it offers more than {MAX_TOOLS} tools", cause=Code.BadGateway)
        following = page.get("nextCursor")
        if not isinstance(following, str) or not following or following == cursor:
            hashes = {name: hash_of(raw) for name, raw in entries.items()}
            places = {name: each for name, each in mirrored.items() if each and name not in refused}
            return Listing(entries, refused, hashes, places)
        cursor = following
    raise ProviderError(f"its list of tools has more than {MAX_PAGES} pages", cause=Code.BadGateway)


def _mirrored(schema: Any) -> tuple[Mapping[tuple[str, ...], str], str]:
    """The arguments that go in headers as well, by the SDK's rules; or what is wrong with them."""
    from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map  # noqa: PLC0415 - as above

    problem = find_invalid_x_mcp_header(schema)
    return ({}, problem) if problem else (x_mcp_header_map(schema), "")


def _entries(page: dict[str, Any]) -> list[Any]:
    tools = page.get("tools")
    if not isinstance(tools, list):
        raise ProviderError("its answer to tools/list has no list of tools", cause=Code.BadGateway)
    return tools


def _named(entry: Any, place: int) -> tuple[dict[str, Any], str]:
    """The definition and its name; of an entry without one its place, under which it is shown and withheld."""
    if isinstance(entry, dict) and isinstance(entry.get("name"), str):
        return entry, entry["name"]
    name = f"entry-{place}"
    return {"name": name}, name
