"""What one client is offered: the tools that policy may let it use, worded as their owners worded them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.mcp_server.definition import fitting
from remit.policy.decision import Caller
from remit.policy.globs import name_matches
from remit.tools.meta import Level

if TYPE_CHECKING:
    from remit.mcp_server.names import Names
    from remit.policy.rules import Policy
    from remit.tools.tool import Tool

_log: Final = logging.getLogger("remit.mcp")


class View(msgspec.Struct, frozen=True):
    """The offer of one moment to one principal."""

    definitions: tuple[dict[str, Any], ...]
    """As `tools/list` answers since 2026-07-28, by name; see `for_older`."""
    tools: dict[str, str]
    """Full names by the names that are shown; also of tools that are not offered, so that a call is told why."""

    def schema(self, shown: str) -> dict[str, Any] | None:
        """The input schema of a tool."""
        return next((each["inputSchema"] for each in self.definitions if each["name"] == shown), None)


def view_of(tools: Sequence[Tool], names: Names, policy: Policy, principal: str, only: tuple[str, ...] = ()) -> View:
    """What a principal sees of the catalog; with `only`, of the tools that these names or globs cover.

    Left out: what is quarantined, what policy forbids whatever the arguments, and what the protocol cannot carry.
    """
    caller = Caller(principal=principal, kind="mcp")
    definitions: dict[str, dict[str, Any]] = {}
    full: dict[str, str] = {}
    for tool in tools:
        shown = names.shown(tool)
        if shown is None or shown in full:
            continue
        if only and not any(name_matches(pattern, tool.meta.name) for pattern in only):
            continue
        full[shown] = tool.meta.name
        if tool.quarantined is not None or policy.forbids(tool.meta, tool.key, caller):
            continue
        schema = tool.meta.input_schema
        if schema is None or schema.get("type") != "object":
            _log.warning("%s is not offered to MCP clients: its schema's root is no object", tool.meta.name)
            continue
        definitions[shown], left = fitting(_definition(tool, shown, schema))
        if left:
            _log.warning("%s is shown to MCP clients without its %s", tool.meta.name, ", ".join(left))
    return View(tuple(definitions[name] for name in sorted(definitions)), full)


def _definition(tool: Tool, shown: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A tool's definition: its owner's, under the name that is shown; ours is made from what the catalog knows."""
    meta = tool.meta
    if meta.definition is not None:
        return {**meta.definition, "name": shown}
    definition: dict[str, Any] = {"name": shown, "description": meta.description, "inputSchema": schema}
    if meta.output_schema is not None and meta.output_schema.get("type") == "object":
        definition["outputSchema"] = meta.output_schema
    definition["annotations"] = {
        "readOnlyHint": not meta.side_effects,
        "destructiveHint": meta.side_effects and meta.capability_level is not Level.L0,
        "idempotentHint": meta.repeatable,
        "openWorldHint": meta.capability_level is Level.L2,
    }
    return definition
