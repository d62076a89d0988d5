"""A client's call, through the gateway: asked about where it must be, run once, answered in the client's words."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from remit.errors import NotFoundError, StateError, UsageError
from remit.gateway.call import Progress, Request
from remit.ids import new_id
from remit.mcp_server.client import Asked
from remit.mcp_server.question import question_of, said
from remit.tools.peer import ELICIT, PeerError

if TYPE_CHECKING:
    from remit.gateway.confirmation import Confirmation
    from remit.gateway.outcome import Outcome
    from remit.gateway.pipeline import Gateway
    from remit.mcp_server.client import Client
    from remit.service.confirmations import Confirmations
    from remit.tools.peer import Peer

_KEY: Final = "decision"
_log: Final = logging.getLogger("remit.mcp")


class Calls:
    """Makes calls for clients."""

    def __init__(self, gateway: Gateway, decisions: Confirmations) -> None:
        """Every call goes through `gateway`; people at a client decide by `decisions`."""
        self._gateway = gateway
        self._confirmations = gateway.services.confirmations
        self._decisions = decisions

    async def make(
        self, client: Client, tool: str, args: dict[str, Any], *, progress: Progress, peer: Peer, decides: bool
    ) -> Outcome:
        """Make a call. One that waits for a person is put to the person at the client, where that can be done.

        Where not, or where the client may not decide, it stays pending; the same call made again goes on with what was
        decided meanwhile, and runs once.
        """
        asked = await self._waiting(client, tool, args)
        try:
            outcome = await self._call(client, tool, args, asked, progress, peer)
            asked = _after(asked, outcome)
            if decides and asked.confirmation is not None and await self._decided(client, asked.confirmation, peer):
                outcome = await self._call(client, tool, args, asked, progress, peer)
                asked = _after(asked, outcome)
        finally:
            if asked.confirmation is not None:
                client.remember(tool, args, asked)  # also where the client gave up: a person may still decide
        return outcome

    async def _waiting(self, client: Client, tool: str, args: dict[str, Any]) -> Asked:
        """The call that this one makes again, of several the first that somebody decided on; else a new one."""
        found = client.asked(tool, args)
        if len(found) > 1:
            found = tuple([each for each in found if await self._answered(each)]) or found
        again = next((each for each in found if client.take(tool, args, each)), None)
        return again or Asked(new_id("s"), None)

    async def _answered(self, asked: Asked) -> bool:
        found = await self._question(asked.confirmation) if asked.confirmation is not None else None
        return found is not None and found.state != "pending"

    async def _call(
        self, client: Client, tool: str, args: dict[str, Any], asked: Asked, progress: Progress, peer: Peer
    ) -> Outcome:
        request = Request(
            tool=tool,
            args=args,
            step=asked.step,
            principal=client.principal,
            caller="mcp",
            confirmation=asked.confirmation,
            leaves=True,
        )
        return await self._gateway.call(request, await client.writer(), progress, peer)

    async def _question(self, confirmation: str) -> Confirmation | None:
        """The question of this name, whatever came of it; None where there is none any more."""
        try:
            return await self._confirmations.find(confirmation)
        except NotFoundError:
            return None

    async def _decided(self, client: Client, confirmation: str, peer: Peer) -> bool:
        """Whether the person at the client decided, and their word counts (policy may want others), or somebody did."""
        found = await self._question(confirmation) if peer.can(ELICIT) else None
        if found is None:
            return False
        if found.state != "pending":
            return True  # by now, elsewhere: nobody is asked what is answered
        try:
            answers = await peer.ask({_KEY: {"method": ELICIT, "params": question_of(found)}})
            heard = said(answers[_KEY])
            if heard is None:
                return False
            await self._decisions.decide(
                found.id, heard.decision, digest=found.request.digest, by=client.principal, reason=heard.reason
            )
        except PeerError:
            return False  # nobody answers there
        except (StateError, UsageError) as error:
            _log.info("what the person at %s said of %s does not count: %s", client.session, found.id, error.message)
            return False
        return True


def _after(asked: Asked, outcome: Outcome) -> Asked:
    """What the call waits for now; nothing, where it was made or refused for good."""
    return Asked(asked.step, outcome.confirmation if outcome.status == "pending" else None)
