"""Every kind of event and the fields of its payload (contract: versioning, "Events"; ours are marked), by topic.

A payload is a JSON object. Fields at their default are left out, unknown fields are ignored on reading, and version
fields are optional, so that a stream from an older Remit still replays. A recorded form only gains optional fields.
`encode` and `decode` are the only way in and out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from remit.errors import ChainBrokenError
from remit.journal.kinds.calls import (
    BytesKept,
    CallLogged,
    CallUngoverned,
    CommandCommitted,
    CommandStarted,
    Done,
    EvidenceAttached,
    GateRefused,
    Known,
    LogLine,
    MessageKept,
    Sayer,
    SchemaGateWarned,
    StepCompensated,
    ToolInvocationFinished,
    ToolInvocationStarted,
    UndoDeclared,
    Undone,
)
from remit.journal.kinds.jobs import (
    STUCK,
    CancelRequested,
    ChildEnded,
    ChildStarted,
    CompensationCompleted,
    CompensationStarted,
    JobCancelled,
    JobCompleted,
    JobCreated,
    JobFailed,
    JobForked,
    JobLabeled,
    JobWaiting,
    ModelDriftRecorded,
    PatchRecorded,
    PlanGenerated,
    RandomRecorded,
    RecoveryCompleted,
    RecoveryStarted,
    ScheduleOrigin,
    SchemaDriftRecorded,
    SignalSent,
    SkillPin,
    StepArgsGiven,
    StepDecided,
    TimeRecorded,
    TimerFired,
    UuidRecorded,
    VersionMismatchRecorded,
    WaitCompleted,
    WaitType,
    WorkerStarted,
)
from remit.journal.kinds.outside import (
    CallContinued,
    CallOpened,
    JournalActivated,
    JournalCopied,
    JournalMoved,
    JournalVouched,
    McpRestartRequested,
    McpToolsPinned,
    RequestAnswered,
    RequestRelayed,
    RequestTaken,
    SessionOpened,
    StreamPruned,
    SubjectErased,
)
from remit.journal.kinds.payload import INNER, REFERENCES, UNSET, ErrorInfo, OptionalRaw, OptionalRef, Payload
from remit.journal.kinds.people import (
    ApprovalRemembered,
    ApprovalRevoked,
    BudgetReached,
    ConfirmationDecided,
    ConfirmationPutOff,
    ConfirmationRequested,
    ConfirmationUsed,
    LimitReturned,
    LimitTaken,
    UntrustedArgument,
    ViewRemoved,
    ViewSaved,
)

_TOPICS: Final = ("jobs", "calls", "models", "waits", "people", "versions", "outside", "places")
"""The files of kinds, in the order of docs/events.md."""


def declare(kinds: Mapping[str, str]) -> None:
    """Make the kinds of a part known: by name the reference of each payload, which is imported with its first event."""
    for kind, reference in kinds.items():
        REFERENCES.setdefault(kind, reference)


def payload_of(kind: str) -> type[Payload]:
    """Return the payload's type of a kind. Raise KeyError, or what importing a part raises."""
    module, _, name = REFERENCES[kind].partition(":")
    payload_type: type[Payload] = getattr(import_module(module), name)
    return payload_type


KINDS: Final[dict[str, type[Payload]]] = {
    kind: payload_of(kind)
    for kind in sorted(
        REFERENCES, key=lambda kind: _TOPICS.index(REFERENCES[kind].partition(":")[0].rpartition(".")[2])
    )
}
"""Every kind of the core by name."""


encode: Final[Callable[[Payload], bytes]] = msgspec.json.Encoder().encode
"""Return the payload's JSON bytes, fields in their declared order."""


class _Decoders(dict[str, Callable[[bytes], Payload]]):
    """The decoder of each kind, made when its first event is read."""

    def __missing__(self, kind: str) -> Callable[[bytes], Payload]:
        decoder = self[kind] = msgspec.json.Decoder(payload_of(kind)).decode
        return decoder


_decoders: Final = _Decoders()


def decode(kind: str, data: bytes) -> Payload | None:
    """The payload of an event; None for a kind of a newer Remit, or of a part that is not here.

    Raises ChainBrokenError if the bytes are not a payload of the kind.
    """
    if kind not in REFERENCES:
        return None
    try:
        return _decoders[kind](data)
    except (msgspec.DecodeError, RecursionError) as error:
        with suppress(msgspec.DecodeError, RecursionError):
            return _newer(kind, data)
        msg = f"a recorded {kind} event cannot be read: {error}"
        raise ChainBrokenError(msg, remedy="Run `remit verify` on the stream.") from error


@cache
def _closed(kind: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the fields of a kind that have a closed list of values: their attribute and the values."""
    payload = payload_of(kind)
    hints = get_type_hints(payload)
    lists = {field.name: _values(hints[field.name]) for field in msgspec.structs.fields(payload)}
    return {f.encode_name: (f.name, lists[f.name]) for f in msgspec.structs.fields(payload) if lists[f.name]}


def _values(hint: object) -> tuple[str, ...]:
    if get_origin(hint) is Union or isinstance(hint, UnionType):
        return tuple(value for argument in get_args(hint) for value in _values(argument))
    return get_args(hint) if get_origin(hint) is Literal else ()


def _newer(kind: str, data: bytes) -> Payload:
    """Return the payload of an event in which a newer Remit recorded a value that closed lists here do not have.

    It keeps the values as they were recorded: they are shown, and are none of those that anything here acts on.
    Raises msgspec.DecodeError where that is not what is wrong with it.
    """
    fields, recorded = msgspec.json.decode(data, type=dict[str, msgspec.Raw]), dict[str, str]()
    for name, (attribute, values) in _closed(kind).items():
        value = msgspec.json.decode(fields[name]) if name in fields else values[0]
        if isinstance(value, str) and value not in values:
            recorded[attribute] = value
            fields[name] = msgspec.Raw(msgspec.json.encode(values[0]))
    payload = _decoders[kind](msgspec.json.encode(fields))
    for attribute, value in recorded.items():
        msgspec.structs.force_setattr(payload, attribute, value)
    return payload
