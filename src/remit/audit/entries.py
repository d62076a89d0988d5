"""An act as it is told: what its event says, in the same fields for every kind of act."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from remit.audit.facts import Act, What
from remit.audit.kinds import OutputRead
from remit.journal import kinds as k
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
    """What other events say of an act."""

    question: k.ConfirmationRequested | None = None
    """The question that was answered."""
    end: k.ToolInvocationFinished | None = None
    """The end of the call."""
    is_running: bool = False


_NOTHING: Final = Context()


def told(act: Act, event: Event, context: Context = _NOTHING) -> Entry:
    """Tell an act from its event."""
    payload = k.decode(event.kind, event.data)
    tell = _TELLERS.get(type(payload))
    fields = tell(payload, context) if tell is not None else {}
    common: dict[str, Any] = {"name": act.name, "who": act.who, "step": getattr(payload, "step", "")}
    texts = {name: line(str(value)) for name, value in (common | fields).items() if name in _TEXTS}
    known: dict[str, Any] = common | fields | texts
    return Entry(what=act.what, at=event.at, position=act.position, stream=event.stream, seq=event.seq, **known)


_TEXTS: Final = frozenset({"name", "who", "reason", "version", "requester"})
"""Fields that others wrote: secrets in them are masked."""


def _called(one: k.ToolInvocationStarted, context: Context) -> dict[str, Any]:
    end = context.end
    if end is None or end.step_outcome == "uncertain":
        outcome = "running" if context.is_running else "unknown"
    else:
        outcome = "ok" if end.outcome == "success" else "failed"
    return {
        "outcome": outcome,
        "code": end.error.code if end is not None and end.error is not None else "",
        "reason": end.error.message if end is not None and end.error is not None else "",
        "rule_id": one.rule_id,
        "policy_hash": one.policy_hash,
        "confirmation": one.confirmation,
        "provider": one.provider_id,
        "version": one.tool_version,
        "request_schema_hash": one.request_schema_hash,
        "response_schema_hash": end.response_schema_hash if end is not None else "",
        "idempotency_key": one.idempotency_key,
    }


def _ended(one: k.ToolInvocationFinished, _context: Context) -> dict[str, Any]:
    return {"outcome": "ok" if one.outcome == "success" else "failed", "reason": one.error.message if one.error else ""}


def _answered(one: k.CommandCommitted, _context: Context) -> dict[str, Any]:
    return {
        "outcome": "ok" if one.outcome == "success" else "failed",
        "code": one.error.code if one.error is not None else "",
        "answered": f"{one.llm_provider}/{one.llm_model}" if one.outcome == "success" else "",
        "temperature": one.llm_temperature,
        "prompt_hash": one.prompt_hash,
        "tokens": one.token_count,
        "cost": one.cost,
    }


def _refused(one: k.GateRefused, _context: Context) -> dict[str, Any]:
    return {
        "code": one.code,
        "reason": one.reason,
        "rule_id": one.rule_id,
        "policy_hash": one.policy_hash,
        "confirmation": one.confirmation,
        "provider": one.provider_id,
        "version": one.tool_version,
        "request_schema_hash": one.request_schema_hash,
    }


def _decided(one: k.ConfirmationDecided, context: Context) -> dict[str, Any]:
    question = context.question
    about: dict[str, Any] = {}
    if question is not None:
        about = {
            "step": question.step,
            "name": question.tool_name or question.question,
            "rule_id": question.rule_id,
            "policy_hash": question.policy_hash,
            "asked_digest": question.digest,
            "requester": question.principal,
            "provider": question.provider_id,
            "version": question.tool_version,
        }
    return about | {
        "outcome": one.decision,
        "reason": one.reason,
        "confirmation": one.confirmation,
        "digest": one.digest,
        "proof": one.proof,
        "signed": bool(one.signature),
    }


def _remembered(one: k.ApprovalRemembered, _context: Context) -> dict[str, Any]:
    answer = one.answers[-1] if one.answers else None
    fields = {"rule_id": f"remembered:{one.rule.get('id', '')}", "confirmation": one.confirmation}
    if answer is None:
        return fields
    return fields | {"digest": answer.digest, "proof": answer.proof, "signed": bool(answer.signature)}


def _because(one: k.ApprovalRevoked | k.CancelRequested | k.SubjectErased, _context: Context) -> dict[str, Any]:
    return {"reason": one.reason}


def _left(one: OutputRead, _context: Context) -> dict[str, Any]:
    return {"face": one.face, "names": one.names}


_TELLERS: Final[dict[type[Any], Callable[[Any, Context], dict[str, Any]]]] = {
    k.ToolInvocationStarted: _called,
    k.ToolInvocationFinished: _ended,
    k.CommandCommitted: _answered,
    k.GateRefused: _refused,
    k.ConfirmationDecided: _decided,
    k.ApprovalRemembered: _remembered,
    k.ApprovalRevoked: _because,
    k.CancelRequested: _because,
    k.SubjectErased: _because,
    OutputRead: _left,
}
