"""Asking the person at the client whether a call may run, in the words of the protocol's elicitation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from remit.redact import MASK, line, mask
from remit.redact.visible import visible

if TYPE_CHECKING:
    from remit.record.views import ConfirmationView

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
