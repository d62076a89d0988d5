"""A question to a person, as a client's dialog shows it, and what the answer says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from remit.redact import MASK, line, mask
from remit.redact.visible import visible
from remit.service.approvals import scopes_of

if TYPE_CHECKING:
    from remit.policy.approval import Scope
    from remit.record.views import ConfirmationView

_SHOWN: Final = 4_000
_LINE: Final = 500
_LEFT_OUT: Final = "\n\nFor what they leave out, the tool takes its defaults:\n\n"
_APPROVE: Final = "approve"
_DENY: Final = "deny"
_CHOICES: Final[Mapping[Scope, str]] = {"session": "approve for this session", "everything": "approve for 8 hours"}
"""The choices that also let later calls run, whatever their arguments; the first one ends after 8 hours, too."""
_ONCE: Final = "approve runs exactly this call, once"
_LATER: Final = "; the longer ones also let the tool run without asking, whatever its arguments, for 8 hours at most"
_DENIAL: Final = "deny refuses this call"
_REASON: Final[dict[str, Any]] = {
    "mode": "form",
    "message": "It is denied. Why? The reason is told to the caller; leave it empty for none.",
    "requestedSchema": {
        "type": "object",
        "properties": {"reason": {"type": "string", "title": "Reason", "maxLength": 1000}},
    },
}


class PersonAnswer(NamedTuple):
    """The answer of a person."""

    decision: Literal["approve", "deny"]
    reason: str = ""
    scope: Scope | None = None
    """The calls that the approval also holds for."""


class QuestionForm(NamedTuple):
    """A question as it is put to a client."""

    params: dict[str, Any]
    """The parameters of `elicitation/create`: the exact call, with all that cannot be seen as escapes."""
    choices: Mapping[str, PersonAnswer]
    """The meaning of each choice that it offers."""

    @classmethod
    def of(cls, question: ConfirmationView, *, session: bool = False, page: str = "") -> QuestionForm:
        """Put a question into words; `session`: whether the session that it is put in is the one that asked.

        `page` is the console's page about it, if its client opens pages.

        Secrets are masked, and what is too long is cut, as everywhere that something is shown; such a call can be
        denied there but not approved (rule 15).
        """
        shown = _shown(_pretty(question))
        reason = f"\n\n{visible(question.question)}" if question.question else ""
        reason += "".join(
            f"\n\n{visible(line(argument.words, _LINE))}\n{visible(line(argument.excerpt, _LINE))}"
            for argument in question.untrusted
        )
        level = f", level {question.capability_level}" if question.capability_level else ""
        end = f"\n\nThe tool is {visible(question.tool)}{level}."
        choices = _choices_of(question, session=session)
        if not approvable(question):
            number = question.confirmation
            end += f" Part of the call is not shown here, so it is approved elsewhere: remit confirm {number}"
        if page:
            end += f"\n\nThe question in the console: {page}"
        message = f"May {visible(question.tool)} run with these arguments?\n\n{shown}{reason}{end}"
        return cls({"mode": "form", "message": message, "requestedSchema": _schema(choices)}, choices)

    def said(self, answer: object) -> PersonAnswer | None:
        """Return what the answer decides; None where it decides nothing. One who declines denies."""
        if not isinstance(answer, dict):
            return None
        if answer.get("action") == "decline":
            return PersonAnswer(_DENY, "declined at the client")
        content = answer.get("content")
        if answer.get("action") != "accept" or not isinstance(content, dict):
            return None
        decision, reason = content.get("decision"), content.get("reason")
        choice = self.choices.get(decision) if isinstance(decision, str) else None
        return choice._replace(reason=reason) if choice is not None and isinstance(reason, str) else choice


def page_of(question: ConfirmationView, console: str) -> str:
    """The console's page about a question; empty without a console."""
    return f"{console}/inbox/{question.confirmation}" if console else ""


def link_to(question: ConfirmationView, page: str) -> dict[str, Any]:
    """The parameters of a question that leads to its page, where it is shown whole and answered."""
    message = f"May {visible(question.tool)} run? The console shows the call, and takes the answer."
    return {"mode": "url", "message": message, "url": page, "elicitationId": question.confirmation}


def reason_form() -> dict[str, Any]:
    """The parameters of the question why a call is denied."""
    return _REASON


def reason_in(answer: object) -> str:
    """Return the reason that an answer to that question gives; empty: none."""
    content = answer.get("content") if isinstance(answer, dict) and answer.get("action") == "accept" else None
    reason = content.get("reason") if isinstance(content, dict) else None
    return reason if isinstance(reason, str) else ""


def approvable(question: ConfirmationView) -> bool:
    """Say whether a client is shown the whole call, nothing masked nor cut, so that it can be approved there."""
    whole = _pretty(question)
    return len(whole) <= _SHOWN and len(visible(whole)) <= _SHOWN and not _hides(whole)


def _choices_of(question: ConfirmationView, *, session: bool) -> dict[str, PersonAnswer]:
    choices = {_DENY: PersonAnswer(_DENY)}
    if not approvable(question):
        return choices
    scopes = [scope for scope in scopes_of(question).values() if scope in _CHOICES and (session or scope != "session")]
    longer = {_CHOICES[scope]: PersonAnswer(_APPROVE, scope=scope) for scope in scopes}
    return {_APPROVE: PersonAnswer(_APPROVE), **longer, **choices}


def _schema(choices: Mapping[str, PersonAnswer]) -> dict[str, Any]:
    longer = any(choice.scope for choice in choices.values())
    description = _ONCE + (_LATER if longer else "") if _APPROVE in choices else _DENIAL
    decision = {"type": "string", "title": "Decision", "enum": list(choices), "description": description}
    return {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}


def _shown(whole: str) -> str:
    # Cut before it is masked: masking hostile text takes seconds for a megabyte.
    part = whole[:_SHOWN]
    shown = visible(mask(part) if _hides(part) else part)
    if len(whole) > _SHOWN or len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}\n… ({len(whole)} characters in all)"
    return shown


def _hides(text: str) -> bool:
    return mask(text).count(MASK) > text.count(MASK)


def _pretty(question: ConfirmationView) -> str:
    """The arguments, and what the tool puts in for what they leave out: all of it is what would run."""
    parts = [question.args, *([question.defaults] if question.defaults else [])]
    return _LEFT_OUT.join(msgspec.json.format(msgspec.json.encode(part), indent=2).decode() for part in parts)
