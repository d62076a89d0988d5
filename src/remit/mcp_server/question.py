"""Asking the person at the client whether a call may run, in the words of the protocol's elicitation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from remit.redact import line, mask

if TYPE_CHECKING:
    from remit.service.views import ConfirmationView

_SHOWN: Final = 4_000
_LINE: Final = 500
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "enum": ["approve", "deny"],
            "description": "approve runs exactly this call, once",
        },
        "reason": {"type": "string", "title": "Reason", "description": "told to whoever asked", "maxLength": 1000},
    },
    "required": ["decision"],
}


class Said(NamedTuple):
    """What a person said."""

    decision: Literal["approve", "deny"]
    reason: str


def question_of(found: ConfirmationView) -> dict[str, Any]:
    """The parameters of `elicitation/create`: the exact call, secrets masked as everywhere that something is shown."""
    shown = mask(msgspec.json.format(msgspec.json.encode(found.args), indent=2).decode())
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}\n… ({len(shown)} characters in all; `remit confirm {found.confirmation}` shows them)"
    why = f"\n\n{found.question}" if found.question else ""
    why += "".join(f"\n\n{line(one.words, _LINE)}\n{line(one.excerpt, _LINE)}" for one in found.untrusted)
    return {
        "mode": "form",
        "message": f"May {found.tool} run with these arguments?\n\n{shown}{why}",
        "requestedSchema": _SCHEMA,
    }


def said(answer: object) -> Said | None:
    """What an elicitation's answer decides; None where the person put the question off."""
    if not isinstance(answer, dict):
        return None
    if answer.get("action") == "decline":
        return Said("deny", "declined at the client")
    content = answer.get("content")
    if answer.get("action") != "accept" or not isinstance(content, dict):
        return None
    decision, reason = content.get("decision"), content.get("reason")
    if decision not in {"approve", "deny"}:
        return None
    return Said(decision, reason if isinstance(reason, str) else "")
