"""A client's call: asked about at the client if it can be, run once, answered with its outcome."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from remit.errors import NotFoundError, StateError, UsageError
from remit.redact import MASK, line, mask
from remit.redact.visible import visible
from remit.service.calls import Live
from remit.tools.peer import ELICIT, PeerError

if TYPE_CHECKING:
    from remit.gateway.call import Progress
    from remit.http.access import Access
    from remit.mcp_server.client import Client
    from remit.record.outcome import OutcomeView
    from remit.record.views import ConfirmationView
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


_SHOWN: Final = 4_000
_LINE: Final = 500
_LEFT_OUT: Final = "\n\nFor what they leave out, the tool takes its defaults:\n\n"
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "enum": ["approve", "deny"],
            "description": "approve runs exactly this call, once",
        },
        "reason": {"type": "string", "title": "Reason", "description": "told to the caller", "maxLength": 1000},
    },
    "required": ["decision"],
}
_DENIAL: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "title": "Decision", "enum": ["deny"], "description": "deny refuses this call"},
        "reason": {"type": "string", "title": "Reason", "description": "told to the caller", "maxLength": 1000},
    },
    "required": ["decision"],
}
"""For a call that cannot be shown whole."""


class Said(NamedTuple):
    """The answer of a person."""

    decision: Literal["approve", "deny"]
    reason: str


def question_of(found: ConfirmationView) -> dict[str, Any]:
    """The parameters of `elicitation/create`: the exact call, with all that cannot be seen as escapes.

    Secrets are masked, and what is too long is cut, as everywhere that something is shown; such a call can be denied
    there but not approved (rule 15).
    """
    whole = _pretty(found)
    # Cut before it is masked: masking hostile text takes seconds for a megabyte.
    part = whole[:_SHOWN]
    shown = visible(mask(part) if _hides(part) else part)
    if len(whole) > _SHOWN or len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}\n… ({len(whole)} characters in all)"
    why = f"\n\n{visible(found.question)}" if found.question else ""
    why += "".join(
        f"\n\n{visible(line(one.words, _LINE))}\n{visible(line(one.excerpt, _LINE))}" for one in found.untrusted
    )
    level = f", level {found.capability_level}" if found.capability_level else ""
    end = f"\n\nThe tool is {visible(found.tool)}{level}."
    if approvable(found):
        schema = _SCHEMA
    else:
        schema = _DENIAL
        end += f" Part of the call is not shown here, so it is approved elsewhere: remit confirm {found.confirmation}"
    return {
        "mode": "form",
        "message": f"May {visible(found.tool)} run with these arguments?\n\n{shown}{why}{end}",
        "requestedSchema": schema,
    }


def approvable(found: ConfirmationView) -> bool:
    """Whether a client is shown the whole call, nothing masked and nothing cut, so that it can be approved there."""
    whole = _pretty(found)
    return len(whole) <= _SHOWN and len(visible(whole)) <= _SHOWN and not _hides(whole)


def _hides(text: str) -> bool:
    return mask(text).count(MASK) > text.count(MASK)


def _pretty(found: ConfirmationView) -> str:
    """The arguments, and what the tool puts in for what they leave out: all of it is what would run."""
    parts = [found.args, *([found.defaults] if found.defaults else [])]
    return _LEFT_OUT.join(msgspec.json.format(msgspec.json.encode(part), indent=2).decode() for part in parts)


def said(answer: object) -> Said | None:
    """Return what an elicitation's answer decides; None where the person put the question off."""
    if not isinstance(answer, dict):
        return None
    if answer.get("action") == "decline":
        return Said("deny", "declined at the client")
    content = answer.get("content")
    if answer.get("action") != "accept" or not isinstance(content, dict):
        return None
    decision, reason = content.get("decision"), content.get("reason")
    if decision == "approve" or decision == "deny":  # noqa: PLR1714 - an answer may hold what cannot be hashed
        return Said(decision, reason if isinstance(reason, str) else "")
    return None
