"""A question to people, as its own stream tells it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from remit.journal import kinds as k
from remit.journal.event import Event
from remit.record.step import Decided, QuestionRecord
from remit.record.untrusted import found


def read_question(identifier: str, events: Iterable[Event]) -> tuple[str, QuestionRecord] | None:
    """The step that asked, and the question with its answers; None where the stream holds no question."""
    request: k.ConfirmationRequested | None = None
    asked_at, used_at = 0, None
    decisions: list[Decided] = []
    for event in events:
        match k.decode(event.kind, event.data):
            case k.ConfirmationRequested() as request:
                asked_at = event.at
            case k.ConfirmationDecided() as decided:
                decisions.append(
                    Decided(
                        decision=decided.decision,
                        by=decided.by,
                        at=event.at,
                        digest=decided.digest,
                        reason=decided.reason,
                        replaced_by=decided.replaced_by,
                    )
                )
            case k.ConfirmationUsed():
                used_at = event.at
            case _:
                continue
    if request is None:
        return None
    return request.step, QuestionRecord(
        confirmation=identifier,
        asked_at=asked_at,
        digest=request.digest,
        question=request.question,
        rule_id=request.rule_id,
        approvals=request.approvals,
        expires_at=request.expires_at,
        edited_from=request.edited_from,
        untrusted=found(request),
        decisions=tuple(decisions),
        used_at=used_at,
    )
