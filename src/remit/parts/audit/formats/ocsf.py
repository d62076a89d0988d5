"""Events of the Open Cybersecurity Schema Framework (OCSF) 1.8.0: an API Activity for each act, a line each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from remit.canonical import canonical
from remit.evidence.answer import CheckAnswer
from remit.journal import kinds as k
from remit.parts.audit.formats.account import AccountEntry, ExportAccount, invalid, not_signed, strict
from remit.parts.audit.formats.table import case_of
from remit.version import __version__

_CATEGORY: Final = {"category_uid": 6, "category_name": "Application Activity"}
_CLASS: Final = {"class_uid": 6003, "class_name": "API Activity"}
_READ, _OTHER = (2, "Read"), (99, "Call")
_INFORMATIONAL, _LOW, _MEDIUM = (1, "Informational"), (2, "Low"), (3, "Medium")
_SUCCESS, _FAILURE, _UNKNOWN, _WAITS = (1, "Success"), (2, "Failure"), (0, "Unknown"), (99, "Waiting")
_ALLOWED, _DENIED, _ASKED = (1, "Allowed"), (2, "Denied"), (99, "Asked")
_MILLISECOND: Final = 1_000


def write(account: ExportAccount) -> Iterator[bytes]:
    """Give the events of a package, a line each. They are not signed."""
    for entry in account.entries:
        if entry.row.ocsf:
            yield canonical(_event(account, entry)) + b"\n"


def _event(account: ExportAccount, entry: AccountEntry) -> dict[str, Any]:
    payload = entry.payload
    read = getattr(payload, "side_effect", "") == "read"
    activity = _READ if read else _OTHER
    status, code = _status(account, entry)
    action = _ALLOWED if entry.row.ocsf in {"call", "model", "answer", "grant"} else _ASKED
    if entry.row.ocsf == "refusal" or (isinstance(payload, k.ConfirmationDecided) and payload.decision != "approve"):
        action = _DENIED
    severity = _MEDIUM if entry.row.case in {"policy", "limit"} else _LOW if status is not _SUCCESS else _INFORMATIONAL
    outcome = account.outcome(entry)
    event: dict[str, Any] = {
        **_CATEGORY, **_CLASS,
        "activity_id": activity[0], "activity_name": activity[1], "type_uid": 600300 + activity[0],
        "severity_id": severity[0], "severity": severity[1], "status_id": status[0], "status": status[1],
        "action_id": action[0], "action": action[1], "time": entry.at // _MILLISECOND,
        "actor": _actor(account, entry),
        "api": _api(account, entry),
        "src_endpoint": {"name": entry.root, "svc_name": "remit"},
        "metadata": {
            "version": "1.8.0", "uid": entry.place, "correlation_uid": entry.root, "sequence": entry.seq,
            "product": {"name": "Remit", "vendor_name": "Remit", "version": __version__},
            "profiles": ["security_control", *(["ai_operation"] if isinstance(payload, k.CommandStarted) else [])],
        },
        "unmapped": {
            "kind": entry.kind, "case": case_of(entry.stream, payload), "chain": entry.chain,
            **account.effect(entry).members,
        },
    }  # fmt: skip
    if code:
        event["status_code"] = code
    if isinstance(payload, k.CommandStarted):
        event["ai_model"] = {"name": payload.llm_model, "ai_provider": payload.llm_provider or "unknown"}
    if rule := getattr(payload, "rule_id", ""):
        event["policy"] = {"uid": getattr(payload, "policy_hash", "") or rule, "name": rule}
    if outcome is not None:
        event |= {"start_time": entry.at // _MILLISECOND, "end_time": outcome.at // _MILLISECOND}
        event["duration"] = max(0, outcome.at - entry.at) // _MILLISECOND
    return event


def _status(account: ExportAccount, entry: AccountEntry) -> tuple[tuple[int, str], str]:
    """Return how an act ended, and its code."""
    match entry.payload:
        case k.GateRefused() as refused:
            return _FAILURE, refused.code
        case k.ConfirmationRequested() as question:
            answered = account.answers.get(question.confirmation)
            return (_SUCCESS, "") if answered else (_WAITS, "CONFIRMATION_REQUIRED")
        case k.ToolInvocationStarted() | k.CommandStarted():
            ended = account.outcome(entry)
            outcome = ended.payload if ended is not None else None
            if not isinstance(outcome, k.ToolInvocationFinished | k.CommandCommitted):
                return _UNKNOWN, "OUTCOME_UNKNOWN"
            if getattr(outcome, "step_outcome", "") == "uncertain" or getattr(outcome, "uncertain", False):
                return _UNKNOWN, "OUTCOME_UNKNOWN"
            code = outcome.error.code if outcome.error is not None else ""
            return (_SUCCESS, "") if outcome.outcome == "success" else (_FAILURE, code)
        case _:
            return _SUCCESS, ""


def _actor(account: ExportAccount, entry: AccountEntry) -> dict[str, Any]:
    by = getattr(entry.payload, "by", "") or account.principal(entry)
    opening = account.opening(entry)
    name = getattr(opening.payload, "name", "") or getattr(opening.payload, "client", "") if opening is not None else ""
    actor: dict[str, Any] = {"app_name": name or "remit", "session": {"uid": entry.root}}
    return {**actor, "user": {"name": by, "uid": by}} if by else actor


def _api(account: ExportAccount, entry: AccountEntry) -> dict[str, Any]:
    payload = entry.payload
    tool = getattr(payload, "tool_name", "") or getattr(payload, "llm_model", "")
    api: dict[str, Any] = {
        "operation": tool or entry.row.name,
        "request": {
            "uid": getattr(payload, "invocation_id", "") or getattr(payload, "confirmation", "") or entry.place
        },
    }
    if provider := getattr(payload, "provider_id", "") or getattr(payload, "llm_provider", ""):
        api["service"] = {"name": provider}
    if version := getattr(payload, "tool_version", ""):
        api["version"] = version
    if digest := account.digest(entry):
        api["request"]["data"] = {"digest": digest}
    return api


def check(data: bytes) -> CheckAnswer:
    """Check the form of each event. Nothing in it is signed: no one vouches for it."""
    ids = set[str]()
    for number, line in enumerate(data.splitlines(), 1):
        event = strict(line, f"line {number}")
        try:
            uid, kind = event["metadata"]["uid"], (event["class_uid"], event["type_uid"] - event["activity_id"])
            forms = (event["unmapped"]["chain"], event["actor"], event["api"]["operation"], event["src_endpoint"])
        except (KeyError, TypeError):
            raise invalid("form_invalid", f"line {number} lacks what an API Activity has to have") from None
        if kind != (6003, 600300) or not all(forms):
            raise invalid("form_invalid", f"line {number} is no API Activity")
        if uid in ids:
            raise invalid("duplicate_uid", f"line {number} tells {json.dumps(uid)} again")
        ids.add(uid)
    raise not_signed(len(ids), "event")
