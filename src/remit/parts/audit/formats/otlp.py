"""Spans by OpenTelemetry's conventions for generative AI, as OTLP's JSON: jobs, calls, models, questions.

The ids of spans follow from the record, so that sending them again shows nothing twice.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

from remit.canonical import canonical
from remit.evidence.answer import CheckAnswer
from remit.http.trace_context import PARENT, TraceContext
from remit.ids import trace_id
from remit.journal import kinds as k
from remit.parts.audit.formats.account import AccountEntry, ExportAccount, Links, invalid, not_signed, strict
from remit.regex import regex
from remit.version import __version__

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.38.0"
_INTERNAL, _CLIENT, _ERROR = 1, 3, 2
_IDS: Final = {"traceId": regex(r"[0-9a-f]{32}"), "spanId": regex(r"[0-9a-f]{16}")}
Attributes = dict[str, Any]


def write(account: ExportAccount) -> bytes:
    """Return all spans of a package as one request. They are not signed."""
    return canonical(request([span_of(account, entry) for entry in account.entries if entry.row.span])) + b"\n"


def request(spans: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the request that sends these spans."""
    return enveloped("Spans", {"spans": spans, "schemaUrl": SCHEMA_URL}, {})


def enveloped(signal: Literal["Spans", "Metrics"], scoped: dict[str, Any], resource: Attributes) -> dict[str, Any]:
    """Return the request that sends what is scoped, with what says who does: more attributes of the resource."""
    every = as_attributes({"service.name": "remit", "service.version": __version__, **resource})
    scope = {"scope": {"name": "remit", "version": __version__}, **scoped}
    return {f"resource{signal}": [{"resource": {"attributes": every}, f"scope{signal}": [scope]}]}


def span_of(account: Links, entry: AccountEntry) -> dict[str, Any]:
    """Return the span that begins with an event; its row says that there is one."""
    ended, attributes = _end(account, entry), _named(account, entry)
    trace, span = _trace(entry), _id(entry)
    target = (
        attributes.get("gen_ai.tool.name")
        or attributes.get("gen_ai.request.model")
        or attributes.get("gen_ai.agent.name")
    )
    parent = _parent(account, entry, trace)
    failed = str(attributes.get("error.type", ""))
    return {
        "traceId": trace,
        "spanId": span,
        **({"parentSpanId": parent} if parent else {}),
        "name": f"{entry.row.span} {target}" if target else entry.row.span,
        "kind": _CLIENT if entry.row.span == "chat" else _INTERNAL,
        "startTimeUnixNano": str(entry.at * 1_000),
        "endTimeUnixNano": str(max(entry.at, ended) * 1_000),
        "attributes": as_attributes(attributes),
        **({"status": {"code": _ERROR, "message": failed}} if failed else {}),
    }


def _trace(entry: AccountEntry) -> str:
    """Return the trace of a span: the one that the record names, else the one that belongs to its root."""
    named = getattr(entry.payload, "trace_id", "")
    if named:
        return str(named)
    try:
        return trace_id(entry.root.partition("/")[2])
    except ValueError:
        return hashlib.sha256(entry.root.encode()).hexdigest()[:32]


def _id(entry: AccountEntry) -> str:
    """Return the id of a span: the one that was handed to the tool, else one that follows from the event's place."""
    return getattr(entry.payload, "span_id", "") or hashlib.sha256(entry.place.encode()).hexdigest()[:16]


def _parent(account: Links, entry: AccountEntry, trace: str) -> str:
    """Return the span that a span lies below: the client's own, else that of the job or session; empty: none."""
    call = entry.payload
    if isinstance(call, k.ToolInvocationStarted):
        client = TraceContext.of(call.client.get(PARENT, ""))
        if client.named and client.trace_id == trace:
            return client.parent
    root = account.opening(entry)
    return _id(root) if root is not None and root is not entry and _trace(root) == trace else ""


def _end(account: Links, entry: AccountEntry) -> int:
    match entry.payload:
        case k.JobCreated() | k.SessionOpened():
            return account.last[entry.stream].at
        case k.ConfirmationRequested() as question:
            answers = account.answers.get(question.confirmation)
            return answers[-1].at if answers else entry.at
        case _:
            ended = account.outcome(entry)
            return ended.at if ended is not None else entry.at


def _named(account: Links, entry: AccountEntry) -> Attributes:
    """Return the attributes of a span: conventional names where there are any, `remit.…` for the rest."""
    payload = entry.payload
    own: Attributes = {
        "gen_ai.operation.name": entry.row.span if entry.row.span != "await_approval" else "",
        "gen_ai.conversation.id": entry.root,
        "remit.stream": entry.stream, "remit.seq": entry.seq, "remit.case": entry.row.case,
        "remit.rule.id": getattr(payload, "rule_id", ""), "remit.policy.hash": getattr(payload, "policy_hash", ""),
        "remit.confirmation.id": getattr(payload, "confirmation", ""), "user.id": account.principal(entry),
    }  # fmt: skip
    match payload:
        case k.JobCreated():
            own |= {"gen_ai.agent.name": payload.name, "gen_ai.agent.version": payload.execution_version}
            own |= _job_end(account, entry)
        case k.SessionOpened():
            own |= {"gen_ai.agent.name": payload.client, "gen_ai.agent.version": payload.client_version}
        case k.CommandStarted():
            own |= _model(account, entry, payload)
        case k.GateRefused(model_call=True):
            own |= {"gen_ai.request.model": payload.tool_name, "error.type": payload.code, "remit.outcome": "refused"}
        case k.ToolInvocationStarted() | k.GateRefused() | k.ConfirmationRequested():
            own |= _tool(account, entry, payload)
        case _:
            pass
    return {name: value for name, value in own.items() if value not in ("", None)}


def _job_end(account: Links, entry: AccountEntry) -> Attributes:
    ended = account.endings.get(entry.stream)
    match ended and ended.payload:
        case k.JobFailed() as failed:
            return {"remit.outcome": "failed", "error.type": failed.error.code}
        case k.JobCancelled():
            return {"remit.outcome": "cancelled"}
        case k.JobCompleted():
            return {"remit.outcome": "completed"}
        case _:
            return {}


def _tool(
    account: Links, entry: AccountEntry, payload: k.ToolInvocationStarted | k.GateRefused | k.ConfirmationRequested
) -> Attributes:
    own: Attributes = {"gen_ai.tool.name": payload.tool_name, "gen_ai.tool.type": "function"}
    if payload.tool_name.startswith("mcp."):
        own |= {"gen_ai.tool.type": "extension", "mcp.method.name": "tools/call"}
    if isinstance(payload, k.ConfirmationRequested):
        answers = [answer.payload for answer in account.answers.get(payload.confirmation, ())]
        last = answers[-1] if answers else None
        own["remit.outcome"] = last.decision if isinstance(last, k.ConfirmationDecided) else "waiting"
        return own
    own |= {"gen_ai.tool.call.id": payload.call_id, "remit.arguments.hash": account.digest(entry)}
    if isinstance(payload, k.GateRefused):
        return own | {"error.type": payload.code, "remit.outcome": "refused"}
    own |= {"remit.invocation.id": payload.invocation_id, "remit.attempt": payload.attempt}
    effect = account.effect(entry)
    own |= {"remit.effect": effect.known, "remit.effect.by": effect.by}
    ended = account.outcome(entry)
    outcome = ended.payload if ended is not None else None
    if not isinstance(outcome, k.ToolInvocationFinished) or outcome.step_outcome == "uncertain":
        return own | {"remit.outcome": "unknown", "error.type": "OUTCOME_UNKNOWN" if ended is not None else ""}
    code = outcome.error.code if outcome.error is not None else outcome.outcome
    return own | {"remit.outcome": outcome.outcome, "error.type": "" if outcome.outcome == "success" else code}


def _model(account: Links, entry: AccountEntry, payload: k.CommandStarted) -> Attributes:
    own: Attributes = {
        "gen_ai.provider.name": payload.llm_provider, "gen_ai.request.model": payload.llm_model,
        "gen_ai.request.temperature": payload.llm_temperature, "remit.invocation.id": payload.invocation_id,
    }  # fmt: skip
    ended = account.outcome(entry)
    answer = ended.payload if ended is not None else None
    if not isinstance(answer, k.CommandCommitted):
        return own | {"remit.outcome": "unknown"}
    failed = answer.error.code if answer.error is not None else ""
    return own | {
        "gen_ai.response.model": answer.llm_model, "gen_ai.response.id": answer.response_id,
        "gen_ai.response.finish_reasons": [answer.finish_reason] if answer.finish_reason else "",
        "gen_ai.usage.input_tokens": answer.input_tokens or "",
        "gen_ai.usage.output_tokens": answer.output_tokens or "",
        "gen_ai.usage.cache_read.input_tokens": answer.cached_tokens or "",
        "gen_ai.usage.cache_creation.input_tokens": answer.cache_written_tokens or "", "error.type": failed,
        "remit.outcome": answer.outcome, "remit.cost.usd": answer.cost,
    }  # fmt: skip


def as_attributes(values: Attributes) -> list[dict[str, Any]]:
    """Return attributes as OTLP lists them."""
    return [{"key": name, "value": _any(value)} for name, value in sorted(values.items())]


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(item) for item in value]}}
    return {"stringValue": value}


def check(data: bytes) -> CheckAnswer:
    """Check the form of each span. Nothing in it is signed: no one vouches for it."""
    spans = [
        span
        for resource in strict(data, "the file")["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    ids = set[str]()
    for span in spans:
        whole = all(pattern.fullmatch(str(span.get(name))) for name, pattern in _IDS.items())
        if not whole or int(span["startTimeUnixNano"]) > int(span["endTimeUnixNano"]):
            raise invalid("form_invalid", f"the id of a span is wrong, or it ends before it begins: {span.get('name')}")
        if span["spanId"] in ids:
            raise invalid("duplicate_span", f"a span is told twice: {span['name']}")
        ids.add(span["spanId"])
    raise not_signed(len(ids), "span")
