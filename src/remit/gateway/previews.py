"""Previews of a call that is asked about: what it would change, and the defaults of its tool."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from remit.errors import ProviderError
from remit.redact import line
from remit.tools.provider import MakesDefaults, Preview, Previews, PreviewsWithin, supports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.gateway.confirmation import Confirmation
    from remit.tools.catalog import Catalog, Tool

_TIMEOUT_S: Final = 10.0
"""A person waits for it."""
PATIENCE_S: Final = 2.0
"""Seconds that a list of questions waits for the tools they are about."""


async def preview_of(catalog: Catalog, confirmation: Confirmation) -> Preview | None:
    """Return what the call would change; None where its provider, as it was asked about, has no preview here."""
    request = confirmation.request
    tool = await catalog.find(request.tool_name) if request.tool_name else None
    if tool is None or tool.meta.provider_id != request.provider_id or not supports(tool.provider, Previews):
        return None
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            if request.sandbox and supports(tool.provider, PreviewsWithin):
                return await tool.provider.preview_within(tool.meta.name, confirmation.args, request.sandbox)
            return await tool.provider.preview(tool.meta.name, confirmation.args)
    except (ProviderError, TimeoutError) as error:
        reason = str(error) if isinstance(error, ProviderError) else f"no answer within {_TIMEOUT_S:g} s"
        return Preview(what="What the call would change is unknown.", problem=line(reason))


def _leaves_out(value: Any, steps: Sequence[str]) -> bool:
    """Return whether a value, or one of those in it, has no member at a place; lists and mappings are no step of it."""
    if isinstance(value, list):
        return any(_leaves_out(item, steps) for item in value)
    if not isinstance(value, dict):
        return False
    name, *rest = steps
    if name in value:
        return bool(rest) and _leaves_out(value[name], rest)
    return not rest or any(_leaves_out(item, steps) for item in value.values())


class Defaults:
    """The defaults of tools that a list of questions is about; each tool is looked up once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tools: dict[str, Tool | None] = {}
        self._patience_s = PATIENCE_S

    async def of(self, confirmation: Confirmation) -> dict[str, Any] | None:
        """The defaults for what the call leaves out; None where the tool is not here as it was asked about."""
        request = confirmation.request
        if not request.contract_hash:  # a question of a recipe, or about a model
            return {}
        if request.tool_name not in self._tools:
            self._tools[request.tool_name] = await self._find(request.tool_name)
        tool = self._tools[request.tool_name]
        if tool is None or tool.quarantined is not None or tool.contract_hash != request.contract_hash:
            return None
        defaults = tool.provider.made(tool.meta.name) if supports(tool.provider, MakesDefaults) else {}
        left_out = {
            f"/{place.replace('.', '/')}": how
            for place, how in defaults.items()
            if _leaves_out(confirmation.args, place.split("."))
        }
        declared = tool.input.defaults(confirmation.args)
        return {**declared, **left_out} if declared is not None else None

    async def _find(self, name: str) -> Tool | None:
        """A tool of the catalog; once a provider has kept the list waiting, no other one may."""
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._catalog.find(name)
        except TimeoutError:
            self._patience_s = 0.0
            return self._catalog.known(name)
