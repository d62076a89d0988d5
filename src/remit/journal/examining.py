"""Whether a stream is what was recorded: its chain, its head, and the values that its events refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ChainBrokenError, PayloadErasedError
from remit.journal.blobs import BlobRef
from remit.journal.chain import verify
from remit.journal.event import UNSET, Event, Head
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
    OptionalRaw,
    OptionalRef,
    Payload,
    ToolInvocationStarted,
    decode,
)
from remit.journal.references import Digest, digests_in, digests_of, payload_of, values_in
from remit.journal.seals import Seals, keyless

_RESTORE: Final = "Restore the journal from a backup."


class Values(Protocol):
    """Reads what stands beside events."""

    async def value(self, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
        """As Journal.value."""
        ...

    async def blob(self, digest: str) -> bytes | None:
        """The bytes kept under a digest."""
        ...


class Examined(msgspec.Struct, frozen=True):
    """What checking a stream found: nothing wrong."""

    events: int
    erased: int
    """Values that were erased with their subject."""
    sealed: bool = False
    """Whether its head has a seal that holds."""


def prove(head: Head, events: Sequence[Event], seals: Seals | None, after: tuple[int, bytes] | None = None) -> None:
    """Raise ChainBrokenError unless these events chain to the head, and its seal holds where there are keys (rule 14).

    `events` are those up to the head's seq: all of them, or those `after` a length and chain value proven before.
    """
    length, last = verify(head.stream, events, after)
    if length != head.seq or last != head.hash:
        msg = f"{head.stream}: the head says {head.seq} events, the stream holds {length} that chain to another value"
        raise ChainBrokenError(msg, remedy=_RESTORE)
    if seals is not None and (doubt := seals.doubt(head)) is not None:
        raise doubt


async def examine(
    head: Head, events: Sequence[Event], seals: Seals | None, values: Values, now: int, proven: set[str] | None = None
) -> Examined:
    """Check all of it. Raises ChainBrokenError, the first it finds.

    `proven` holds the digests of shared values that were checked for other streams, and grows.
    """
    prove(head, events, None)
    if said := contradiction(head, events):
        msg = f"{head.stream}: the head is not what its events say: {said}"
        raise ChainBrokenError(msg, remedy="Someone changed the head. Trust the events, and restore a backup.")
    if seals is None and head.seal:
        raise keyless(head)
    if seals is not None and (doubt := seals.doubt(head)) is not None:
        raise doubt
    looking = _Examination(values, set() if proven is None else proven)
    for event in events:
        payload = payload_of(event, now)
        if payload is not None:
            await looking.payload(payload)
    return Examined(len(events), looking.erased, seals is not None)


class _Examination:
    """The values of one stream."""

    def __init__(self, values: Values, proven: set[str]) -> None:
        self.erased = 0
        self._values = values
        self._proven = proven
        self._absent: set[str] = set()
        """Digests of bytes that are not there, and need not be."""
        self._keeps_schemas = True
        """Whether the Remit that recorded this also kept the schemas: it said how risky a tool is, too."""

    async def payload(self, payload: Payload) -> None:
        """Check what an event keeps beside itself."""
        if isinstance(payload, ToolInvocationStarted) and not payload.risk_level:
            self._keeps_schemas = False
        for named in digests_in(payload):
            kept = getattr(payload, "policy_kept", False) if named.whose == "policy" else self._keeps_schemas
            await self._digest(named, kept=kept)
        for value in values_in(payload):
            data = value.inline_bytes if value.ref is None else await self._value(value.ref)
            if data is None or value.holds is None:
                continue
            for named in digests_of(value, data):
                await self._digest(named, kept=True)

    async def _value(self, ref: BlobRef) -> bytes | None:
        try:
            return await self._values.value(UNSET, ref)
        except PayloadErasedError:
            self.erased += 1
            return None

    async def _digest(self, named: Digest, *, kept: bool) -> None:
        """Check bytes that are named by their digest alone; `kept`: they were recorded."""
        digest = named.digest
        if digest in self._proven or (not kept and digest in self._absent):
            return
        data = await self._values.blob(digest)
        if data is None and (not kept or named.whose not in {"shared", "policy"}):
            self._absent.add(digest)
            return  # evidence is kept for a time, and an older Remit kept less
        if data == b"" and named.whose == "own":
            self.erased += 1
            return
        if not data:
            msg = f"the bytes of {digest} are gone"
            raise ChainBrokenError(msg, code=Code.BLOB_MISSING, remedy=_RESTORE)
        if sha256(data) != digest:
            raise ChainBrokenError(f"the bytes kept as {digest} have another digest", remedy=_RESTORE)
        self._proven.add(digest)


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
    """Return what in a head is not what its events say; empty: nothing.

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
