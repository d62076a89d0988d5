"""Whether a stream is what was recorded: its chain, its head, and the values that its events refer to."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ChainBrokenError, PayloadErasedError
from remit.journal.blobs import BlobRef
from remit.journal.event import UNSET, Event, StreamHead, root, verify
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
    JobLabeled,
    JournalActivated,
    JournalCopied,
    JournalMoved,
    OptionalRaw,
    OptionalRef,
    Payload,
    StreamPruned,
    ToolInvocationStarted,
)
from remit.journal.labels import relabeled
from remit.journal.references import (
    TWIN,
    Digest,
    digests_in,
    digests_of,
    facts_of,
    is_expired,
    overlays_of,
    shape_of,
    values_in,
)
from remit.journal.seals import ID_BYTES, Seals, keyless
from remit.journal.values import PRUNED, RESTORE, Blobs, beginning

STRETCH: Final = 400
"""Events that are looked at together: more outgrow a processor's cache."""
_TWIN: Final = f'{TWIN}"'.encode()


class EventValues(Blobs, Protocol):
    """Reads what stands beside events."""

    async def value(self, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
        """As Journal.value."""
        ...


class Examined(msgspec.Struct, frozen=True):
    """What checking a stream found: nothing wrong."""

    events: int
    erased: int
    """Values that were erased with their subject."""
    sealed: bool = False
    """Whether its head has a seal that holds."""
    absent: tuple[Digest, ...] = ()
    """Bytes that are not there, and need not be."""
    pruned: int = 0
    """Events that were removed, for which a stub stands."""
    keyless: bool = False
    """Whether its head is sealed, and no key of the journal is here."""


Visit = Callable[[Sequence[Event], Sequence[Payload | None]], Awaitable[object]]
"""Takes events that are intact, with the payload of each, or its facts (`facts_of`), page by page."""


async def pass_by(_events: Sequence[Event], _payloads: Sequence[Payload | None]) -> None:
    """Take nothing."""


def prove(
    head: StreamHead, events: Sequence[Event], seals: Seals | None, after: tuple[int, bytes] | None = None
) -> None:
    """Raise ChainBrokenError unless these events chain to the head, and its seal holds where there are keys (rule 14).

    `events` are those up to the head's seq: all of them, what is left of them after a stub, or those `after` a length
    and chain value proven before.
    """
    _prove_end(head, verify(head.stream, events, after or beginning(events)))
    if seals is not None and (doubt := seals.doubt(head)) is not None:
        raise doubt


async def examine(
    head: StreamHead,
    pages: AsyncIterable[Sequence[Event]],
    seals: Seals | None,
    values: EventValues,
    now: int,
    *,
    proven: set[str] | None = None,
    visit: Visit = pass_by,
    keyless_too: bool = False,
) -> Examined:
    """Check all of it, and read each event once. Raises ChainBrokenError, the first it finds.

    Raises JournalError (KEY_MISSING) where nothing is wrong but no key of a sealed head is here, unless `keyless_too`.

    `pages` are the events up to the head's seq, or from a stub on. `proven` holds the digests of values that were
    checked, for other streams too, and grows. `visit` is given each page when it is intact; what follows may not be.
    """
    looking = _Examination(values, now, set() if proven is None else proven)
    end, telling, pruned, newer = (0, root(head.stream)), list[Payload](), 0, False
    async for events in pages:
        if end[0] == 0 and (before := beginning(events)) is not None:
            end, pruned = before, before[0]
        end = verify(head.stream, events, end)
        try:
            payloads = [facts_of(event) for event in events]
            await looking.look(events, payloads)
        except ChainBrokenError as error:
            raise ChainBrokenError(f"{head.stream}: {error.message}", code=error.code, remedy=error.remedy) from error
        known = [payload for payload in payloads if payload is not None]
        newer = newer or len(known) < len(payloads)
        telling += [payload for payload in known if type(payload) in _TELLING]
        await visit(events, payloads)
    _prove_end(head, end)
    if not newer and (problem := contradiction(head, telling)):  # states of a newer Remit follow from its events
        msg = f"{head.stream}: the head is not what its events say: {problem}"
        raise ChainBrokenError(msg, remedy="Someone changed the head. Trust the events, and restore a backup.")
    if seals is None and head.seal and not keyless_too:
        raise keyless(head.seal[:ID_BYTES])
    if seals is not None and (doubt := seals.doubt(head)) is not None:
        raise doubt
    absent = tuple(looking.absent.values())
    missing = seals is None and bool(head.seal)
    return Examined(end[0] - pruned, looking.erased, seals is not None, absent, pruned, missing)


def _prove_end(head: StreamHead, end: tuple[int, bytes]) -> None:
    length, last = end
    if length != head.seq or last != head.hash:
        msg = f"{head.stream}: the head says {head.seq} events, the stream holds {length} that chain to another value"
        raise ChainBrokenError(msg, remedy=RESTORE)


class _Beside(NamedTuple):
    """The places where payloads of a type say what they keep beside themselves."""

    digests: Callable[[Payload], Any] | None
    """Give the digests that one names, with what their absence depends on; None: it names none."""
    is_open: bool
    """True if each has to be looked at."""
    has_values: bool


@lru_cache(maxsize=256)
def _beside(payload: type[Payload]) -> _Beside:
    shape = shape_of(payload)
    names = [name for name, _ in shape.digests]
    weighed = {"risk_level", "policy_kept"} & {*payload.__struct_fields__}
    digests = attrgetter(*names, *weighed) if names else None
    return _Beside(digests, bool(shape.nested or shape.holding), bool(shape.values))


class _Examination:
    """The values of one stream."""

    def __init__(self, values: EventValues, now: int, proven: set[str]) -> None:
        self.erased = 0
        self._values = values
        self._now = now
        self._proven = proven
        self.absent: dict[str, Digest] = {}
        """Bytes that are not there, and need not be."""
        self._named: set[Any] = set()
        """The names by digest alone that were looked at, event by event."""
        self._keeps_schemas = True
        """Whether the Remit that recorded this also kept the schemas: it said how risky a tool is, too."""

    async def look(self, events: Sequence[Event], payloads: Sequence[Payload | None]) -> None:
        """Check what events keep beside themselves."""
        named, kinds = self._named, dict[type[Payload], _Beside]()
        for event, payload in zip(events, payloads, strict=True):
            if payload is None:
                continue
            beside = kinds.get(type(payload)) or kinds.setdefault(type(payload), _beside(type(payload)))
            names = beside.digests(payload) if beside.digests is not None else None
            if names is not None and names not in named:
                named.add(names)
            elif not beside.is_open and not (beside.has_values and _TWIN in event.data):
                continue
            await self._look(event.kind, payload)

    async def _look(self, kind: str, payload: Payload) -> None:
        if is_expired(payload, self._now):
            return
        if kind == ToolInvocationStarted.KIND and not getattr(payload, "risk_level", ""):
            self._keeps_schemas = False
        for named in digests_in(payload):
            is_kept = getattr(payload, "policy_kept", False) if named.whose == "policy" else self._keeps_schemas
            await self._digest(named, needed=is_kept)
        for value in values_in(payload):
            data = (
                await self._value(value.ref) if value.ref is not None else value.inline_bytes if value.holds else None
            )
            for named in digests_of(value, data) if data is not None else ():
                await self._digest(named, needed=True)

    async def _value(self, ref: BlobRef) -> bytes | None:
        """Return the bytes of a value; None: they were erased, or were looked at before."""
        if ref.digest in self._proven:
            return None
        try:
            data = await self._values.value(UNSET, ref)
        except PayloadErasedError:
            self.erased += 1
            return None
        self._proven.add(ref.digest)
        return data

    async def _digest(self, named: Digest, *, needed: bool) -> None:
        """Check bytes that are named by their digest alone; `needed`: they were recorded."""
        digest = named.digest
        if digest in self._proven or (not needed and digest in self.absent):
            return
        data = await self._values.blob(digest)
        if data is None and (not needed or named.whose not in {"shared", "policy"}):
            self.absent[digest] = named
            return  # evidence is kept for a time, and an older Remit kept less
        if data == b"" and named.whose == "own":
            self.erased += 1
            return
        if not data:
            msg = f"the bytes of {digest} are gone"
            raise ChainBrokenError(msg, code=Code.BLOB_MISSING, remedy=RESTORE)
        if sha256(data) != digest:
            raise ChainBrokenError(f"the bytes kept as {digest} have another digest", remedy=RESTORE)
        self._proven.add(digest)
        for overlay in overlays_of(data) if named.whose == "policy" else ():
            await self._digest(overlay, needed=needed)


_JOB_ENDS: Final[dict[type[Payload], str]] = {
    JobCompleted: "completed",
    JobFailed: "failed",
    JobCancelled: "cancelled",
}
_JOB_OPEN: Final = ("pending", "running", "waiting")
_DECIDED: Final = {"deny": "denied", "edit": "replaced", "expire": "expired", "revoke": "withdrawn"}
_TELLING: Final = frozenset(
    {
        JobCreated,
        JobLabeled,
        *_JOB_ENDS,
        ConfirmationRequested,
        ConfirmationUsed,
        ConfirmationDecided,
        ApprovalRemembered,
        ApprovalRevoked,
        JournalCopied,
        JournalMoved,
        JournalActivated,
        StreamPruned,
    }
)
"""The events that heads follow from."""
_JOB_NAME, _CONFIRMATION_ID, _APPROVED_TOOL = "remit.name", "id", "tool"

Said = tuple[tuple[str, ...], bool, dict[str, str]]
"""The states that fit, whether the stream is closed, and the labels it must have."""


def contradiction(head: StreamHead, payloads: Sequence[Payload]) -> str:
    """Return what in a head is not what its events say; empty: nothing.

    `payloads` are those of the whole stream, verified. A head without a state belongs to a stream that is in no list.
    """
    say = _SAY.get(head.kind)
    state = (_stub(payloads, head) or say(payloads)) if say is not None and head.state else None
    if state is None:
        return ""
    states, closed, labels = state
    if head.state not in states:
        return f"its state is {head.state}, its events say {' or '.join(states)}"
    if head.closed != closed:
        return f"it is {'closed' if head.closed else 'open'}, its events say {'closed' if closed else 'open'}"
    for name, value in labels.items():
        if head.labels.get(name) != value:
            return f"its label {name} is {head.labels.get(name)!r}, its events say {value!r}"
    return ""


def _stub(payloads: Sequence[Payload], head: StreamHead) -> Said | None:
    """Return what the stub says of a stream of which nothing else is left."""
    stub = payloads[0] if len(payloads) == 1 else None
    return ((stub.state, PRUNED), head.closed, {}) if isinstance(stub, StreamPruned) else None


def _job(payloads: Sequence[Payload]) -> Said | None:
    created = next((payload for payload in payloads if isinstance(payload, JobCreated)), None)
    if created is None:
        return None
    ends = [_JOB_ENDS[type(payload)] for payload in payloads if type(payload) in _JOB_ENDS]
    labels = relabeled({}, *(payload.labels for payload in payloads if isinstance(payload, JobLabeled)))
    return (tuple(ends[-1:]) or _JOB_OPEN), bool(ends), labels | {_JOB_NAME: created.name}


def _confirmation(payloads: Sequence[Payload]) -> Said | None:
    payload = next((each for each in payloads if isinstance(each, ConfirmationRequested)), None)
    if payload is None:
        return None
    state, approved = "pending", set[str]()
    for event in payloads:
        if isinstance(event, ConfirmationUsed):
            state = "used"
        elif isinstance(event, ConfirmationDecided) and event.decision == "approve":
            approved.add(event.by)
            state = "approved" if len(approved) >= payload.approvals else state
        elif isinstance(event, ConfirmationDecided):
            if not event.replaced_by and event.decision not in _DECIDED:
                return None  # a newer Remit knows what state that is
            state = "replaced" if event.replaced_by else _DECIDED[event.decision]
    return (state,), state not in {"pending", "approved"}, {_CONFIRMATION_ID: payload.confirmation}


def _approval(payloads: Sequence[Payload]) -> Said | None:
    payload = next((each for each in payloads if isinstance(each, ApprovalRemembered)), None)
    if payload is None:
        return None
    revoked = any(isinstance(each, ApprovalRevoked) for each in payloads)
    return ("revoked" if revoked else "active",), revoked, {_APPROVED_TOOL: str(payload.rule.get("tool", ""))}


def _standing(payloads: Sequence[Payload]) -> Said | None:
    state = ""
    for payload in payloads:
        if isinstance(payload, JournalCopied):
            state = "backup" if payload.complete else "copying"
        elif isinstance(payload, JournalMoved | JournalActivated):
            state = "moved" if isinstance(payload, JournalMoved) else "live"
    return ((state,), False, {}) if state else None


_SAY: Final[dict[str, Callable[[Sequence[Payload]], Said | None]]] = {
    "job": _job,
    "confirmation": _confirmation,
    "approval": _approval,
    "journal": _standing,
}
"""By the kind of stream; what a head of another kind has to say is not known here."""
