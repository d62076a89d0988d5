"""Ready: are the dependencies there that the tool requires?"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome, refused
from remit.gateway.readiness import named

if TYPE_CHECKING:
    from remit.gateway.services import Services


class Ready:
    """Refuses a call early whose dependency is known to be down, before anyone is asked to approve it."""

    def __init__(self, services: Services) -> None:
        self._readiness = services.readiness

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Refuse with MCP_REQUIRED_UNAVAILABLE, naming what is missing."""
        required = call.tool.meta.requires
        return self._if_ready(required, call, proceed) if required else proceed(call)

    async def _if_ready(self, required: Sequence[str], call: Call, proceed: Proceed) -> Outcome:
        missing = await self._readiness.missing(required)
        if missing:
            remedy = "Start the missing dependencies, then try again. `remit doctor` shows more."
            return refused(Code.MCP_REQUIRED_UNAVAILABLE, f"{call.tool.meta.name} needs {named(missing)}", remedy)
        return await proceed(call)
