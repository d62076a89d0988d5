"""Erasing everything that was recorded about a subject, with the chains left whole."""

from __future__ import annotations

import msgspec

from remit.errors import PayloadErasedError, UsageError
from remit.journal.blobs import BlobRef
from remit.journal.event import Blob, Event, HeadQuery
from remit.journal.journal import Journal
from remit.journal.kinds import UNSET, EvidenceAttached, SubjectErased, decode
from remit.journal.salting import erasure_of, kept_evidence, references

_KIND = "subject"
"""The kind of the streams that erasures are recorded in."""


class Erased(msgspec.Struct, frozen=True):
    """What an erasure took away."""

    streams: int
    values: int
    """Values and pieces of evidence."""


async def erase(journal: Journal, subject: str, *, by: str = "", reason: str = "") -> Erased:
    """Erase every value of every stream with this subject, in the transaction that records it.

    Events, hashes and times stay. A job of the subject that has not ended cannot go on afterwards, and what it still
    records is not erased: end it first, or erase again. Raises UsageError without a subject.
    """
    if not subject:
        raise UsageError("an erasure needs a subject", remedy="Give the subject that the streams were created with.")
    streams, digests, before = 0, dict[str, None](), None
    while page := await journal.heads(HeadQuery(subject=subject, before=before)):
        for head in page:
            for event in await journal.read(head.stream):
                digests |= dict.fromkeys(await _kept(journal, event))
        streams += len(page)
        before = page[-1].stream
    stream = erasure_of(subject)
    recorded = SubjectErased(
        subject=stream.rpartition("/")[2], streams=streams, values=len(digests), by=by, reason=reason
    )
    await journal.post(stream, _KIND, recorded, blobs=[Blob(digest, b"") for digest in digests])
    return Erased(streams, len(digests))


async def _kept(journal: Journal, event: Event) -> list[str]:
    """The digests of what an event still has beside it."""
    found = []
    for ref in references(event):
        if ref.key and await journal.blob(ref.digest):
            found.append(ref.digest)
            found += await _evidence(journal, event, ref)
    return found


async def _evidence(journal: Journal, event: Event, ref: BlobRef) -> list[str]:
    attached = decode(event.kind, event.data)
    if not isinstance(attached, EvidenceAttached):
        return []
    try:
        items = await journal.value(UNSET, ref)
    except PayloadErasedError:  # by someone else, at this moment
        return []
    return kept_evidence(items or b"[]")
