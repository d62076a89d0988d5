"""Every kind of event and the fields of its payload (contract: versioning, "Events"; ours are marked), by topic.

A payload is a JSON object. Fields at their default are left out, unknown fields are ignored on reading, and version
fields are optional, so that a stream from an older Remit still replays. A recorded form only gains optional fields.
`encode` and `decode` are the only way in and out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

import msgspec

from remit.errors import ChainBrokenError
from remit.journal.kinds.calls import (
    BytesKept,
    Done,
    EvidenceAttached,
    GateRefused,
    SchemaGateWarned,
    StepCompensated,
    ToolInvocationFinished,
    ToolInvocationStarted,
    UndoDeclared,
    Undone,
)
from remit.journal.kinds.inbox import CancelRequested, SignalSent, StepDecided
from remit.journal.kinds.jobs import (
    ChildEnded,
    ChildStarted,
    CompensationCompleted,
    CompensationStarted,
    JobCancelled,
    JobCompleted,
    JobCreated,
    JobFailed,
    JobForked,
    PlanGenerated,
    RecoveryCompleted,
    RecoveryStarted,
)
from remit.journal.kinds.limits import LimitTaken
from remit.journal.kinds.models import CommandCommitted, CommandStarted, MessageKept
from remit.journal.kinds.outside import (
    CallOpened,
    McpToolsPinned,
    RequestAnswered,
    RequestRelayed,
    RequestTaken,
    SessionOpened,
)
from remit.journal.kinds.payload import REFERENCES, UNSET, ErrorInfo, OptionalRaw, OptionalRef, Payload
from remit.journal.kinds.people import (
    ApprovalRemembered,
    ApprovalRevoked,
    ConfirmationDecided,
    ConfirmationRequested,
    ConfirmationUsed,
    ViewRemoved,
    ViewSaved,
)
from remit.journal.kinds.places import JournalActivated, JournalCopied, JournalMoved
from remit.journal.kinds.readings import RandomRecorded, TimeRecorded, UuidRecorded
from remit.journal.kinds.subjects import SubjectErased
from remit.journal.kinds.untrusted import UntrustedArgument
from remit.journal.kinds.versions import ModelDriftRecorded, SchemaDriftRecorded, VersionMismatchRecorded
from remit.journal.kinds.waits import JobWaiting, TimerFired, WaitCompleted, WaitType
from remit.journal.kinds.workers import WorkerStarted

__all__ = [
    "KINDS",
    "TOPICS",
    "UNSET",
    "ApprovalRemembered",
    "ApprovalRevoked",
    "BytesKept",
    "CallOpened",
    "CancelRequested",
    "ChildEnded",
    "ChildStarted",
    "CommandCommitted",
    "CommandStarted",
    "CompensationCompleted",
    "CompensationStarted",
    "ConfirmationDecided",
    "ConfirmationRequested",
    "ConfirmationUsed",
    "Done",
    "ErrorInfo",
    "EvidenceAttached",
    "GateRefused",
    "JobCancelled",
    "JobCompleted",
    "JobCreated",
    "JobFailed",
    "JobForked",
    "JobWaiting",
    "JournalActivated",
    "JournalCopied",
    "JournalMoved",
    "LimitTaken",
    "McpToolsPinned",
    "MessageKept",
    "ModelDriftRecorded",
    "OptionalRaw",
    "OptionalRef",
    "Payload",
    "PlanGenerated",
    "RandomRecorded",
    "RecoveryCompleted",
    "RecoveryStarted",
    "RequestAnswered",
    "RequestRelayed",
    "RequestTaken",
    "SchemaDriftRecorded",
    "SchemaGateWarned",
    "SessionOpened",
    "SignalSent",
    "StepCompensated",
    "StepDecided",
    "SubjectErased",
    "TimeRecorded",
    "TimerFired",
    "ToolInvocationFinished",
    "ToolInvocationStarted",
    "UndoDeclared",
    "Undone",
    "UntrustedArgument",
    "UuidRecorded",
    "VersionMismatchRecorded",
    "ViewRemoved",
    "ViewSaved",
    "WaitCompleted",
    "WaitType",
    "WorkerStarted",
    "declare",
    "decode",
    "encode",
    "payload_of",
]

TOPICS: Final[dict[str, tuple[type[Payload], ...]]] = {
    "jobs": (
        JobCreated,
        PlanGenerated,
        JobForked,
        RecoveryStarted,
        RecoveryCompleted,
        ChildStarted,
        ChildEnded,
        CompensationStarted,
        CompensationCompleted,
        JobCompleted,
        JobFailed,
        JobCancelled,
    ),
    "calls": (
        ToolInvocationStarted,
        ToolInvocationFinished,
        EvidenceAttached,
        BytesKept,
        GateRefused,
        SchemaGateWarned,
        UndoDeclared,
        StepCompensated,
    ),
    "models": (CommandStarted, CommandCommitted),
    "waits": (JobWaiting, WaitCompleted, TimerFired),
    "readings": (TimeRecorded, RandomRecorded, UuidRecorded),
    "inbox": (SignalSent, CancelRequested, StepDecided),
    "people": (
        ConfirmationRequested,
        ConfirmationDecided,
        ConfirmationUsed,
        ApprovalRemembered,
        ApprovalRevoked,
        ViewSaved,
        ViewRemoved,
    ),
    "limits": (LimitTaken,),
    "versions": (VersionMismatchRecorded, SchemaDriftRecorded, ModelDriftRecorded),
    "outside": (SessionOpened, CallOpened, RequestTaken, RequestAnswered, RequestRelayed, McpToolsPinned),
    "subjects": (SubjectErased,),
    "places": (JournalCopied, JournalMoved, JournalActivated),
    "workers": (WorkerStarted,),
}
"""The core's kinds in the order of docs/events.md, by the file that holds them."""

KINDS: Final[dict[str, type[Payload]]] = {payload.KIND: payload for topic in TOPICS.values() for payload in topic}
"""Every kind of the core by name."""


def declare(kinds: Mapping[str, str]) -> None:
    """Make the kinds of a part known: by name the reference of each payload, which is imported with its first event."""
    for kind, reference in kinds.items():
        REFERENCES.setdefault(kind, reference)


def payload_of(kind: str) -> type[Payload]:
    """Return the payload's type of a kind. Raise KeyError, or what importing a part raises."""
    module, _, name = REFERENCES[kind].partition(":")
    found: type[Payload] = getattr(import_module(module), name)
    return found


_encode = msgspec.json.Encoder().encode


class _Decoders(dict[str, Callable[[bytes], Payload]]):
    """The decoder of each kind, made when its first event is read."""

    def __missing__(self, kind: str) -> Callable[[bytes], Payload]:
        decoder = self[kind] = msgspec.json.Decoder(payload_of(kind)).decode
        return decoder


_decoders: Final = _Decoders()


def encode(payload: Payload) -> bytes:
    """The payload's JSON bytes, fields in their declared order."""
    return _encode(payload)


def decode(kind: str, data: bytes) -> Payload | None:
    """The payload of an event; None for a kind of a newer Remit, or of a part that is not here.

    Raises ChainBrokenError if the bytes are not a payload of the kind.
    """
    if kind not in REFERENCES:
        return None
    try:
        return _decoders[kind](data)
    except (msgspec.DecodeError, RecursionError) as error:
        msg = f"a recorded {kind} event cannot be read: {error}"
        raise ChainBrokenError(msg, remedy="Run `remit verify` on the stream.") from error
