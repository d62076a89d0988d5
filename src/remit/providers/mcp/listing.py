"""The offer of a server, exactly as it worded it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

from remit.codes import Code
from remit.errors import ProviderError
from remit.tools.pins import hash_of

if TYPE_CHECKING:
    from remit.providers.mcp.session import Session

MAX_TOOLS: Final = 2_000
"""Tools of one server; more are no catalog but an attack on it."""
MAX_PAGES: Final = 200


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
        return mcp_param_headers(self.mirrored.get(name, {}), args)


NOTHING: Final = Listing({}, {}, {}, {})


async def listing_of(session: Session) -> Listing:
    """Ask for all pages. Raises MCPError, or ProviderError for an answer that cannot be meant."""
    found: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.ask("tools/list", {"cursor": cursor} if cursor else {})
        for place, entry in enumerate(_entries(page), start=len(found) + 1):
            tool, name = _named(entry, place)
            if tool is not entry:
                refused[name] = "the server lists it without a name"
            elif name in found:
                refused[name] = "the server lists it twice"
            elif why := find_invalid_x_mcp_header(tool.get("inputSchema")):
                refused[name] = f"the server's definition is not valid: {why}"
            found[name] = tool
        if len(found) > MAX_TOOLS:
            raise ProviderError(f"it offers more than {MAX_TOOLS} tools", cause=Code.BadGateway)
        following = page.get("nextCursor")
        if not isinstance(following, str) or not following or following == cursor:
            return _listing(found, refused)
        cursor = following
    raise ProviderError(f"its list of tools has more than {MAX_PAGES} pages", cause=Code.BadGateway)


def _listing(found: dict[str, dict[str, Any]], refused: dict[str, str]) -> Listing:
    maps = {name: x_mcp_header_map(raw.get("inputSchema")) for name, raw in found.items() if name not in refused}
    return Listing(
        tools=found,
        refused=refused,
        hashes={name: hash_of(raw) for name, raw in found.items()},
        mirrored={name: places for name, places in maps.items() if places},
    )


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
