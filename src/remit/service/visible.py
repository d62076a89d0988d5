"""The tools that a principal may use, as any face offers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from remit.http.access import Access
from remit.policy.decision import Caller
from remit.policy.levels import exposed
from remit.policy.overlay import covers
from remit.tools.meta import Level
from remit.tools.names import key_of

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.policy.decision import CallerKind
    from remit.tools.tool import Tool


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the catalog, with everything that a model is told of it."""

    name: str
    key: str
    wire_name: str
    provider_id: str
    description: str
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    definition: dict[str, Any] | None
    """The tool as its MCP server describes it; None for one of another provider."""
    annotations: dict[str, bool]
    """Hints in the protocol's words, from what the catalog knows."""
    offered: bool
    """False for a tool that the principal may not use: it is withheld, or refused whatever the arguments."""


class Visible(msgspec.Struct, frozen=True, kw_only=True):
    """The catalog at one moment, for one principal."""

    tools: tuple[OfferedTool, ...]
    complete: bool
    """False while providers are to be listed: more tools may come."""
    unlisted: frozenset[str] = frozenset()
    """Ids of the providers whose tools are not known now: they are being listed, or could not be."""


def visible(tools: list[Tool], services: Services, principal: str, kind: CallerKind, only: tuple[str, ...]) -> Visible:
    """Return what a principal sees of `tools`; with `only`, of those that these names, globs or keys cover."""
    caller, catalog = Caller(principal=principal, kind=kind), services.catalog
    covered = [tool for tool in tools if not only or covers(only, tool.meta.name, tool.key)]
    return Visible(
        tools=tuple(offered_tool(tool, services, caller) for tool in covered),
        complete=not catalog.listing,
        unlisted=frozenset(each for each in catalog.provider_ids if not catalog.heard(each)),
    )


def offered_tool(tool: Tool, services: Services, caller: Caller) -> OfferedTool:
    """A tool as a caller is offered it."""
    meta = tool.meta
    refused = exposed(meta, services.limits.unprotected) or services.policy.forbids(meta, tool.key, caller)
    return OfferedTool(
        name=meta.name,
        key=tool.key,
        wire_name=tool.wire_name,
        provider_id=meta.provider_id,
        description=meta.description,
        input_schema=meta.input_schema,
        output_schema=meta.output_schema,
        definition=meta.definition,
        annotations={
            "readOnlyHint": not meta.side_effects,
            "destructiveHint": meta.side_effects and meta.capability_level is not Level.L0,
            "idempotentHint": meta.repeatable,
            "openWorldHint": meta.capability_level is Level.L2,
        },
        offered=tool.quarantined is None and not refused,
    )


def sees_tool(access: Access, tool: str) -> bool:
    """Return whether a token covers a tool; one that is limited covers no question that is about no tool."""
    return not access.tools or (bool(tool) and covers(access.tools, tool, key_of(tool)))
