"""An act as it is told: what its event says, in the same fields for every kind of act."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from remit.audit.facts import Act, What
from remit.journal import kinds as k
from remit.journal.effects import effect_of, recorded
from remit.journal.event import Event
from remit.redact import line


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An act: who did, allowed, refused or decided what, on what, and why."""

    what: What
    at: int
    """Microseconds since the Unix epoch."""
    position: int
    """Its place among all, by which pages are told apart; of one job, among the events of that job."""
    stream: str
    seq: int
    step: str = ""
    name: str = ""
    """The tool or model; of a read, the operation."""
    who: str = ""
    """The principal that asked for it, or the person who decided."""
    outcome: str = ""
    """Of a call `ok`, `failed`, `running` or `unknown`; of an answer what was decided."""
    effect: k.Known = ""
    """The known effect of a call, however good its result was; empty: it only reads, or runs."""
    effect_by: k.Sayer = ""
    """The one who says so: `remit`, the `tool` or a `person`."""
    code: str = ""
    reason: str = ""
    rule_id: str = ""
    policy_hash: str = ""
    confirmation: str = ""
    """The question that a person answered."""
    digest: str = ""
    """The digest that the person had in front of them."""
    asked_digest: str = ""
    """The digest of what is asked about; the same, unless the answer does not count."""
    proof: str = ""
    """The proof of who the person is: `token`, `signature` and so on; empty: a claim."""
    signed: bool = False
    """Whether the answer carries a signature."""
    requester: str = ""
    """The principal whose call a person was asked about."""
    provider: str = ""
    version: str = ""
    request_schema_hash: str = ""
    response_schema_hash: str = ""
    idempotency_key: str = ""
    answered: str = ""
    """The model that answered, `provider/model`."""
    temperature: float | None = None
    prompt_hash: str = ""
    tokens: int = 0
    cost: float | None = None
    """US dollars; null: no price is known."""
    face: str = ""
    """The way by which a reader got it: `http`, `page` or `command`."""
    names: dict[str, str] = {}
    """The names of what was read, such as of a `job`."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that other events tell of an act."""

    question: k.ConfirmationRequested | None = None
    """The question that was answered."""
    end: k.ToolInvocationFinished | None = None
    """The end of the call."""
    is_running: bool = False


_NOTHING: Final = Context()
_FIELDS: Final = {
    "step": "step", "code": "code", "reason": "reason", "rule_id": "rule_id", "policy_hash": "policy_hash",
    "confirmation": "confirmation", "digest": "digest", "proof": "proof", "provider": "provider_id",
    "version": "tool_version", "request_schema_hash": "request_schema_hash",
    "response_schema_hash": "response_schema_hash", "idempotency_key": "idempotency_key",
    "temperature": "llm_temperature", "prompt_hash": "prompt_hash", "tokens": "token_count", "cost": "cost",
    "face": "face", "names": "names", "outcome": "decision",
}  # fmt: skip
"""By field of an entry that of the payload which says it; an event that lacks one says nothing of it."""
_TEXTS: Final = ("name", "who", "reason", "version", "requester")
"""Fields that others wrote: secrets in them are masked."""


def told(act: Act, event: Event, context: Context = _NOTHING) -> Entry:
    """Tell an act from its event, and from those that say more of it."""
    payload: Any = k.decode(event.kind, event.data)
    fields: dict[str, Any] = {"name": act.name, "who": act.who, **_said(payload)}
    match payload:
        case k.ToolInvocationStarted():
            fields |= _ended(context.end, is_running=context.is_running)
            if context.end is not None or not context.is_running:
                fields |= effect_of(payload, context.end).members
        case k.ToolInvocationFinished() | k.CommandCommitted():
            fields |= _ended(payload, is_running=False)
            if isinstance(payload, k.CommandCommitted) and payload.outcome == "success":
                fields["answered"] = f"{payload.llm_provider}/{payload.llm_model}"
            if isinstance(payload, k.ToolInvocationFinished):
                fields |= recorded(payload).members
        case k.ConfirmationDecided():
            fields |= _asked(context.question) | _said(payload) | {"signed": bool(payload.signature)}
        case k.ApprovalRemembered(answers=(*_, answer)):
            fields |= _said(answer) | {"signed": bool(answer.signature), "outcome": ""}
        case _:
            pass
    texts = {name: line(str(fields[name])) for name in _TEXTS if fields.get(name)}
    return Entry(
        what=act.what, at=event.at, position=act.position, stream=event.stream, seq=event.seq, **{**fields, **texts}
    )


def _said(payload: Any) -> dict[str, Any]:
    said = ((name, getattr(payload, field, None)) for name, field in _FIELDS.items())
    return {name: value for name, value in said if value is not None and value != ""}


def _asked(question: k.ConfirmationRequested | None) -> dict[str, Any]:
    if question is None:
        return {}
    about = {"name": question.tool_name or question.question, "requester": question.principal}
    return _said(question) | about | {"asked_digest": question.digest}


def _ended(end: k.ToolInvocationFinished | k.CommandCommitted | None, *, is_running: bool) -> dict[str, Any]:
    if end is None or getattr(end, "step_outcome", "") == "uncertain":
        return {"outcome": "running" if is_running else "unknown"}
    error = {"code": end.error.code, "reason": end.error.message} if end.error is not None else {}
    schema = {"response_schema_hash": getattr(end, "response_schema_hash", "")}
    return {"outcome": "ok" if end.outcome == "success" else "failed", **error, **schema}
