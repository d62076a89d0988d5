"""LoadConfirmation: a call that waited for a person comes back with what the person decided on."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome

if TYPE_CHECKING:
    from remit.gateway.services import Services


class LoadConfirmation:
    """Loads the confirmation a request names; an edited one brings its own arguments, which pass every check again."""

    def __init__(self, services: Services) -> None:
        self._confirmations = services.confirmations

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Set `confirmation` and `args` if the confirmation was asked for this very call; else it is ignored."""
        named = call.request.confirmation
        return proceed(call) if named is None else self._with(named, call, proceed)

    async def _with(self, confirmation: str, call: Call, proceed: Proceed) -> Outcome:
        recalled = await self._confirmations.recall(call.writer.stream, confirmation)
        asked_for = (call.tool.meta.name, call.arguments_hash)
        if recalled is not None and (recalled.tool, recalled.arguments_hash) == asked_for:
            call.confirmation = recalled.newest
            if recalled.newest.request.edited_from:
                call.take(recalled.newest.args)
        return await proceed(call)
