"""The pinned tools of servers that are not used (`NO_MCP`): names and schemas as they were pinned, and no effects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from remit.errors import ChainBrokenError
from remit.providers.mcp.offers import full_names, meta_of
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.pins import read_pins

if TYPE_CHECKING:
    from remit.settings.mcp import McpServer
    from remit.tools.pins import Pins

_log: Final = logging.getLogger("remit.mcp")


async def stand_ins(servers: Sequence[McpServer], pins: Pins, file: str = "") -> list[ToolMeta]:
    """Return what to offer in place of the servers' tools; nothing for a server without a pin that can be believed.

    A server that was never pinned in the journal is looked up in `file`, a PinFile, if one is named. Each is a tool of
    L0: what answers for it touches nothing. Raises SettingsError for a file that cannot be read.
    """
    metas: list[ToolMeta] = []
    others = await asyncio.to_thread(read_pins, Path(file)) if file else {}
    for server in servers:
        try:
            pin = await pins.load(server.name)
        except ChainBrokenError as error:
            _log.warning("the MCP server %s is left out: %s", server.name, error.message)
            continue
        definitions = pin.definitions if pin is not None else others.get(server.name, {})
        names, shared = full_names(server.name, definitions)
        metas += [_harmless(meta_of(server, names[own], raw)) for own, raw in definitions.items() if own not in shared]
    return metas


def _harmless(meta: ToolMeta) -> ToolMeta:
    return msgspec.structs.replace(
        meta,
        capability_level=Level.L0,
        risk_level=Risk.READ_ONLY,
        side_effects=False,
        requires_confirm=False,
        idempotent=False,
        retry=None,
        requires=(),
    )
