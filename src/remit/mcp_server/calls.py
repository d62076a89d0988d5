"""A client's call: asked about at the client if it can be, run once, answered with its outcome."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from remit.errors import NotFoundError, StateError, UsageError
from remit.mcp_server.question import approvable, question_of, said
from remit.service.calls import Live
from remit.tools.peer import ELICIT, PeerError

if TYPE_CHECKING:
    from remit.gateway.call import Progress
    from remit.http.access import Access
    from remit.mcp_server.client import Client
    from remit.record.outcome import OutcomeView
    from remit.service.service import Service
    from remit.tools.peer import Peer

_KEY: Final = "decision"
_log: Final = logging.getLogger("remit.mcp")


class Calls:
    """Makes calls for clients."""

    def __init__(self, service: Service) -> None:
        """Make calls, and let people at clients decide, through `service`."""
        self._service = service

    async def make(
        self, client: Client, tool: str, args: dict[str, Any], *, progress: Progress, peer: Peer, access: Access
    ) -> OutcomeView:
        """Make a call. One that waits for a person is put to the person at the client, if `access` says there is one.

        If not, it stays pending; the same call made again continues with what was decided meanwhile, and runs once.
        """

        async def ask(confirmation: str) -> bool:
            return await self._decided(client, confirmation, peer, access)

        live = Live(progress, peer, ask if access.dialog and access.allows("decide") and peer.can(ELICIT) else None)
        return await self._service.sessions.call(await client.session(), tool, args, only=access.tools, live=live)

    async def _decided(self, client: Client, confirmation: str, peer: Peer, access: Access) -> bool:
        """Whether it is decided: here, if policy lets the person at the client decide, or meanwhile elsewhere."""
        confirmations = self._service.confirmations
        try:
            found = await confirmations.view(confirmation)
            if found.state != "pending":
                return True
            answers = await peer.ask({_KEY: {"method": ELICIT, "params": question_of(found)}})
            heard = said(answers[_KEY])
            if heard is None or (heard.decision == "approve" and not approvable(found)):
                return False
            decided = await confirmations.decide(
                confirmation,
                heard.decision,
                digest=found.digest,
                by=client.principal,
                reason=heard.reason,
                proof="token" if access.principal else "",
            )
        except (PeerError, NotFoundError):
            return False  # the client is gone, or the question
        except (StateError, UsageError) as error:
            _log.info("the answer of %s to %s does not count: %s", client.principal, confirmation, error.message)
            decided = await confirmations.view(confirmation)
        return decided.state != "pending"
