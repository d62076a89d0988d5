"""The offer to one client: the tools that policy may let it use, worded as their owners worded them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.mcp_server.definition import fitting
from remit.mcp_server.search import OURS, definitions_of, source_of
from remit.policy.overlay import covers

if TYPE_CHECKING:
    from remit.mcp_server.names import Names
    from remit.service.visible import OfferedTool, Visible

_log: Final = logging.getLogger("remit.mcp")


class OfferView(msgspec.Struct, frozen=True):
    """The offer of one moment to one principal."""

    definitions: tuple[dict[str, Any], ...]
    """As `tools/list` answers since 2026-07-28, by name; see `for_older`."""
    hidden: tuple[dict[str, Any], ...]
    """Those of tools that are found by a search instead."""
    tools: dict[str, str]
    """Full names by the names that are shown; also of tools that are not offered, so that a call is told why."""
    providers: dict[str, bool] = {}
    """Whether a provider offers any tool, by its id; those without tools are left out."""
    unlisted: frozenset[str] = frozenset()
    """Ids of providers whose tools are not known."""

    def schema(self, shown: str) -> dict[str, Any] | None:
        """The input schema of a tool."""
        offered = (*self.definitions, *self.hidden)
        return next((each["inputSchema"] for each in offered if each["name"] == shown), None)


def view_of(visible: Visible, names: Names, listed: Sequence[str] | None) -> OfferView:
    """The offer of the visible tools; left out is what the principal may not use, and what the protocol cannot carry.

    `listed` names the tools that are in the list beside those that find and call the others; None: all are.
    """
    definitions: dict[str, dict[str, Any]] = {}
    hidden: dict[str, str] = {}
    full: dict[str, str] = {}
    providers: dict[str, bool] = {}
    for tool in visible.tools:
        providers[tool.provider_id] = providers.get(tool.provider_id, False) or tool.offered
        shown = names.shown(tool)
        if shown is None or shown in full:
            continue
        full[shown] = tool.name
        if not tool.offered:
            continue
        schema = tool.input_schema
        if schema is None or schema.get("type") != "object":
            _log.warning("%s is not offered to MCP clients: the root of its schema is not an object", tool.name)
            continue
        if listed is not None and not _stays(tool, shown, listed):
            hidden[shown] = source_of(tool)
        definitions[shown], left = fitting(_definition(tool, shown, schema))
        if left:
            _log.warning("%s is shown to MCP clients without its %s", tool.name, ", ".join(left))
    in_list = [definitions[name] for name in sorted(definitions) if name not in hidden]
    if listed is not None:
        in_list = [*definitions_of(hidden.values()), *in_list]
    return OfferView(
        tuple(in_list), tuple(definitions[name] for name in sorted(hidden)), full, providers, visible.unlisted
    )


def _stays(tool: OfferedTool, shown: str, listed: Sequence[str]) -> bool:
    """Return whether a tool is in the list although others have to be found; none can be where ours are."""
    return shown not in OURS and (covers(listed, tool.name, tool.key) or covers(listed, shown, shown))


def _definition(tool: OfferedTool, shown: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A tool's definition: its owner's, under the name that is shown; ours is made from what the catalog knows."""
    if tool.definition is not None:
        return {**tool.definition, "name": shown}
    definition: dict[str, Any] = {"name": shown, "description": tool.description, "inputSchema": schema}
    if tool.output_schema is not None and tool.output_schema.get("type") == "object":
        definition["outputSchema"] = tool.output_schema
    definition["annotations"] = tool.annotations
    return definition
