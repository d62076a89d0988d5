"""What a call that is asked about would change, as its provider sees it now."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from remit.errors import ProviderError
from remit.redact import line
from remit.tools.provider import Preview, Previews

if TYPE_CHECKING:
    from remit.gateway.confirmation import Confirmation
    from remit.tools.catalog import Catalog

_TIMEOUT_S: Final = 10.0
"""A person waits for it."""


async def preview_of(catalog: Catalog, found: Confirmation) -> Preview | None:
    """What the call would change; None where its provider, as it was asked about, has no preview here."""
    request = found.request
    tool = await catalog.find(request.tool_name) if request.tool_name else None
    if tool is None or tool.meta.provider_id != request.provider_id or not isinstance(tool.provider, Previews):
        return None
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return await tool.provider.preview(tool.meta.name, found.args)
    except (ProviderError, TimeoutError) as error:
        why = str(error) if isinstance(error, ProviderError) else f"no answer within {_TIMEOUT_S:g} s"
        return Preview(what="What the call would change is unknown.", problem=line(why))
