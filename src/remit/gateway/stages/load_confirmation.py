"""LoadConfirmation: a call that waited for a person comes back with what the person decided on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome

if TYPE_CHECKING:
    from remit.gateway.services import Services


class LoadConfirmation:
    """Loads the confirmation a request names; an edited one brings its own arguments, which pass every check again."""

    def __init__(self, services: Services) -> None:
        self._confirmations = services.confirmations

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Set `confirmation` and `args` if the confirmation was asked for this very call; else it is ignored."""
        if call.request.confirmation is not None:
            recalled = await self._confirmations.recall(call.writer.stream, call.request.confirmation)
            asked_for = (call.tool.meta.name, call.arguments_hash)
            if recalled is not None and (recalled.tool, recalled.arguments_hash) == asked_for:
                call.confirmation = recalled.newest
                if recalled.newest.request.edited_from:
                    call.take(recalled.newest.args)
        return await proceed(call)
