"""Whether a head says what its stream's events say. Heads are an index: only what is chained decides (rule 14).

A head also holds what no event says, such as a job's title and when it is due. That cannot be checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from remit.journal.event import Event, Head
from remit.journal.kinds import (
    ApprovalRemembered,
    ApprovalRevoked,
    ConfirmationDecided,
    ConfirmationRequested,
    ConfirmationUsed,
    JobCancelled,
    JobCompleted,
    JobCreated,
    JobFailed,
    JournalActivated,
    JournalCopied,
    JournalMoved,
    Payload,
    decode,
)

_JOB_ENDS: Final[dict[type[Payload], str]] = {
    JobCompleted: "completed",
    JobFailed: "failed",
    JobCancelled: "cancelled",
}
_JOB_OPEN: Final = ("pending", "running", "waiting")
_DECIDED: Final = {"deny": "denied", "edit": "replaced", "expire": "expired", "revoke": "withdrawn"}
_JOB_NAME, _CONFIRMATION_ID, _APPROVED_TOOL = "remit.name", "id", "tool"

Said = tuple[tuple[str, ...], bool, dict[str, str]]
"""The states that fit, whether the stream is closed, and the labels it must have."""


def contradiction(head: Head, events: Iterable[Event]) -> str:
    """What in a head is not what its events say; empty: nothing.

    `events` are the whole stream, verified. A head without a state belongs to a stream that is in no list.
    """
    say = _SAY.get(head.kind)
    if say is None or not head.state:
        return ""
    payloads = [decode(event.kind, event.data) for event in events]
    said = say([payload for payload in payloads if payload is not None])
    if said is None:
        return ""
    states, closed, labels = said
    if head.state not in states:
        return f"its state is {head.state}, its events say {' or '.join(states)}"
    if head.closed != closed:
        return f"it is {'closed' if head.closed else 'open'}, its events say {'closed' if closed else 'open'}"
    for name, value in labels.items():
        if head.labels.get(name) != value:
            return f"its label {name} is {head.labels.get(name)!r}, its events say {value!r}"
    return ""


def _job(payloads: Sequence[Payload]) -> Said | None:
    created = next((one for one in payloads if isinstance(one, JobCreated)), None)
    if created is None:
        return None
    ends = [_JOB_ENDS[type(one)] for one in payloads if type(one) in _JOB_ENDS]
    return (tuple(ends[-1:]) or _JOB_OPEN), bool(ends), {_JOB_NAME: created.name}


def _confirmation(payloads: Sequence[Payload]) -> Said | None:
    asked = next((one for one in payloads if isinstance(one, ConfirmationRequested)), None)
    if asked is None:
        return None
    state, approved = "pending", set[str]()
    for one in payloads:
        if isinstance(one, ConfirmationUsed):
            state = "used"
        elif isinstance(one, ConfirmationDecided) and one.decision == "approve":
            approved.add(one.by)
            state = "approved" if len(approved) >= asked.approvals else state
        elif isinstance(one, ConfirmationDecided):
            state = "replaced" if one.replaced_by else _DECIDED[one.decision]
    return (state,), state not in {"pending", "approved"}, {_CONFIRMATION_ID: asked.confirmation}


def _approval(payloads: Sequence[Payload]) -> Said | None:
    kept = next((one for one in payloads if isinstance(one, ApprovalRemembered)), None)
    if kept is None:
        return None
    revoked = any(isinstance(one, ApprovalRevoked) for one in payloads)
    return ("revoked" if revoked else "active",), revoked, {_APPROVED_TOOL: str(kept.rule.get("tool", ""))}


def _standing(payloads: Sequence[Payload]) -> Said | None:
    state = ""
    for one in payloads:
        if isinstance(one, JournalCopied):
            state = "backup" if one.complete else "copying"
        elif isinstance(one, JournalMoved | JournalActivated):
            state = "moved" if isinstance(one, JournalMoved) else "live"
    return ((state,), False, {}) if state else None


_SAY: Final[dict[str, Callable[[Sequence[Payload]], Said | None]]] = {
    "job": _job,
    "confirmation": _confirmation,
    "approval": _approval,
    "journal": _standing,
}
"""By the kind of stream; what a head of another kind has to say is not known here."""
