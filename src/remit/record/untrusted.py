"""The arguments of a call from untrusted text, and what was decided (docs/untrusted.md). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from remit.codes import Code
from remit.jobs.records import CallRecord
from remit.journal import kinds as k
from remit.journal.blobs import BlobRef
from remit.record.step import QuestionRecord, Untrusted
from remit.redact import mask

_decode: Final = msgspec.json.Decoder(tuple[k.UntrustedArgument, ...]).decode


def found(event: k.ToolInvocationStarted | k.GateRefused | k.ConfirmationRequested) -> Untrusted | None:
    """The untrusted arguments that an event records; None if there are none."""
    if isinstance(event.untrusted_blob, BlobRef):
        return Untrusted(kept=event.untrusted_blob)
    return arguments(bytes(event.untrusted)) if isinstance(event.untrusted, msgspec.Raw) else None


def arguments(recorded: bytes) -> Untrusted:
    """The untrusted arguments as they are recorded, with secrets masked."""
    return Untrusted(arguments=tuple(msgspec.structs.replace(one, value=mask(one.value)) for one in _decode(recorded)))


def judged(record: CallRecord, questions: Sequence[QuestionRecord]) -> Untrusted | None:
    """The untrusted arguments of a call, and what was decided; None if it has none."""
    event = record.refused or record.started
    told = found(event) if event is not None else questions[-1].untrusted if questions else None
    if told is None:
        return None
    answers = [(question.confirmation, answer) for question in questions for answer in question.decisions]
    last = answers[-1][1] if answers else None
    if record.refused is not None and record.refused.code == Code.UNTRUSTED_ARGUMENT.name:
        return msgspec.structs.replace(told, decided="denied", by=f"rule {record.refused.rule_id}")
    if record.started is None:
        if last is not None and last.decision in {"deny", "expire"}:
            return msgspec.structs.replace(told, decided="denied" if last.decision == "deny" else "expired", by=last.by)
        return told if record.refused is not None else msgspec.structs.replace(told, decided="asked")
    spent = record.started.confirmation
    people = [answer.by for name, answer in answers if name == spent and answer.decision == "approve"]
    if people:
        return msgspec.structs.replace(told, decided="approved", by=", ".join(people))
    return msgspec.structs.replace(told, decided="allowed", by=f"rule {record.started.rule_id}")
