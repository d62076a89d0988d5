"""A question to people, as its own stream tells it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from remit.codes import Code
from remit.jobs.state import CallRecord
from remit.journal import kinds as k
from remit.journal.blobs import BlobRef
from remit.journal.event import Event
from remit.journal.kinds.people import Via
from remit.record.step import Decided, PutOff, QuestionRecord, Untrusted
from remit.redact import mask


def read_question(identifier: str, events: Iterable[Event]) -> tuple[str, QuestionRecord] | None:
    """The step that asked, and the question with its answers; None where the stream holds no question."""
    request: k.ConfirmationRequested | None = None
    asked_at, used_at = 0, None
    decisions: list[Decided] = []
    put_off: list[PutOff] = []
    for event in events:
        match k.decode(event.kind, event.data):
            case k.ConfirmationRequested() as request:
                asked_at = event.at
            case k.ConfirmationDecided() as decided:
                via = decided.via or Via()
                decisions.append(
                    Decided(
                        decision=decided.decision,
                        by=decided.by,
                        at=event.at,
                        digest=decided.digest,
                        reason=decided.reason,
                        replaced_by=decided.replaced_by,
                        channel=via.channel,
                        account=via.account,
                        shown=via.shown,
                        instead_of=via.instead_of,
                    )
                )
            case k.ConfirmationPutOff() as answer:
                put_off.append(
                    PutOff(
                        client=answer.client,
                        answer=answer.answer,
                        at=event.at,
                        after_ms=answer.after_ms,
                        by_program=answer.by_program,
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
        put_off=tuple(put_off),
        used_at=used_at,
    )


_decode: Final = msgspec.json.Decoder(tuple[k.UntrustedArgument, ...]).decode


def found(event: k.ToolInvocationStarted | k.GateRefused | k.ConfirmationRequested) -> Untrusted | None:
    """The untrusted arguments that an event records; None if there are none."""
    if isinstance(event.untrusted_blob, BlobRef):
        return Untrusted(kept=event.untrusted_blob)
    return arguments(bytes(event.untrusted)) if isinstance(event.untrusted, msgspec.Raw) else None


def arguments(recorded: bytes) -> Untrusted:
    """The untrusted arguments as they are recorded, with secrets masked."""
    return Untrusted(
        arguments=tuple(msgspec.structs.replace(argument, value=mask(argument.value)) for argument in _decode(recorded))
    )


def judged(record: CallRecord, questions: Sequence[QuestionRecord]) -> Untrusted | None:
    """The untrusted arguments of a call, and what was decided; None if it has none."""
    event = record.refused or record.started
    untrusted = found(event) if event is not None else questions[-1].untrusted if questions else None
    if untrusted is None:
        return None
    answers = [(question.confirmation, answer) for question in questions for answer in question.decisions]
    last = answers[-1][1] if answers else None
    if record.refused is not None and record.refused.code == Code.UNTRUSTED_ARGUMENT.name:
        return msgspec.structs.replace(untrusted, decided="denied", by=f"rule {record.refused.rule_id}")
    if record.started is None:
        if last is not None and last.decision in {"deny", "expire"}:
            return msgspec.structs.replace(
                untrusted, decided="denied" if last.decision == "deny" else "expired", by=last.by
            )
        return untrusted if record.refused is not None else msgspec.structs.replace(untrusted, decided="asked")
    spent = record.started.confirmation
    people = [answer.by for name, answer in answers if name == spent and answer.decision == "approve"]
    if people:
        return msgspec.structs.replace(untrusted, decided="approved", by=", ".join(people))
    return msgspec.structs.replace(untrusted, decided="allowed", by=f"rule {record.started.rule_id}")
