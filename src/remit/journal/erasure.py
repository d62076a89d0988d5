"""Erasing everything that was recorded about a subject, with the chains left whole."""

from __future__ import annotations

import msgspec

from remit.errors import PayloadErasedError, UsageError
from remit.journal.event import OPEN_STATES, Blob, Event, HeadQuery
from remit.journal.journal import Journal
from remit.journal.kinds import UNSET, SubjectErased, decode
from remit.journal.references import Value, digests_of, erasure_of, values_in
from remit.journal.scan import every_head

_KIND = "subject"
"""The kind of the streams that erasures are recorded in."""


class Erased(msgspec.Struct, frozen=True):
    """What an erasure took away."""

    streams: int
    values: int
    """Values and pieces of evidence."""
    left: int = 0
    """Values that stand in the events of an older Remit, or beside them for everyone: they cannot be erased."""
    unfinished: tuple[str, ...] = ()
    """Streams that are not over: what they still record is not erased."""


async def erase(journal: Journal, subject: str, *, by: str = "", reason: str = "") -> Erased:
    """Erase every value of every stream with this subject, in the transaction that records it.

    Events, hashes and times stay. A job of the subject that has not ended cannot go on afterwards, and what it still
    records is not erased: end it first, or erase again. An older Remit recorded what a model was asked in the events:
    such values are `left`. Raises UsageError without a subject.
    """
    if not subject:
        raise UsageError("an erasure needs a subject", remedy="Give the subject that the streams were created with.")
    erasure = await _of(journal, subject)
    stream, done = erasure_of(subject), erasure.counts
    recorded = SubjectErased(
        subject=stream.rpartition("/")[2],
        streams=done.streams,
        values=done.values,
        left=done.left,
        by=by,
        reason=reason,
    )
    await journal.post(stream, _KIND, recorded, blobs=[Blob(digest, b"") for digest in erasure.digests])
    return done


async def erasable(journal: Journal, subject: str) -> Erased:
    """Return what `erase` would take away now."""
    return (await _of(journal, subject)).counts


class _Found(msgspec.Struct):
    """What a subject has."""

    counts: Erased
    digests: dict[str, None]


async def _of(journal: Journal, subject: str) -> _Found:
    streams, left, digests = 0, 0, dict[str, None]()
    unfinished: list[str] = []
    async for head in every_head(journal, HeadQuery(subject=subject)):
        for event in await journal.left(head.stream):
            kept_values = await _kept(journal, event)
            digests |= dict.fromkeys(kept_values.erasable)
            left += kept_values.left
        streams += 1
        is_root = head.stream.count("/") == 1  # its questions end with it
        if is_root and head.state in OPEN_STATES and not head.closed:
            unfinished.append(head.stream)
    return _Found(Erased(streams, len(digests), left, tuple(unfinished)), digests)


class _Kept(msgspec.Struct):
    """What an event still has."""

    erasable: list[str] = []
    """Digests of bytes that no other stream has."""
    left: int = 0


async def _kept(journal: Journal, event: Event) -> _Kept:
    kept_values = _Kept()
    payload = decode(event.kind, event.data)
    for value in values_in(payload) if payload is not None else ():
        if value.ref is None or not value.ref.key:
            kept_values.left += 1
        elif await journal.blob(value.ref.digest):
            kept_values.erasable.append(value.ref.digest)
            kept_values.erasable += await _own(journal, value)
    return kept_values


async def _own(journal: Journal, value: Value) -> list[str]:
    """The digests of what belongs to a value, such as the bytes of evidence."""
    if value.holds is None or value.ref is None:
        return []
    try:
        data = await journal.value(UNSET, value.ref)
    except PayloadErasedError:  # by someone else, at this moment
        return []
    return [named.digest for named in digests_of(value, data or b"[]") if named.whose == "own"]
