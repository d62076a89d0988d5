"""The kept part of a call's evidence (contract: tickets, "Evidence"). Pure: candidates in, items and blobs out.

Class A is kept whole or not at all, class B is cut at its head, class C is never kept. Bytes never enter an event or a
report (rule 10): a small text stands inline, a larger one lies in a blob, and an item says by digest what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from remit.canonical import MAX_INT, canonical, sha256
from remit.clock import DAY
from remit.codes import Code
from remit.errors import NotCanonicalError
from remit.gateway.outcome import EvidenceItem
from remit.journal.event import Blob
from remit.tools.provider import EvidenceCandidate

CUT: Final = frozenset({"probe_log", "stderr", "http_body_preview", "trace"})
"""Class B; every kind that is neither here nor in NEVER is class A."""
NEVER: Final = frozenset({"secrets", "credentials", "pii_raw"})
"""Class C."""
FORBIDDEN: Final = frozenset({"bytes", "raw_bytes", "blob", "base64", "buffer"})
"""Metadata keys that would carry bytes into a report."""
_MAX_KIND: Final = 100
_MAX_SOURCE: Final = 2_000
"""Characters; a longer source is most likely the content itself."""


class EvidenceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes of UTF-8."""

    inline: int
    raw: int
    items: int
    """Items per call; more are counted in the last one's metadata and dropped."""
    days: int
    """The days that blobs are kept; 0: forever."""


class Kept(msgspec.Struct, frozen=True):
    """What is recorded: items for the event, blobs beside it."""

    items: tuple[EvidenceItem, ...]
    blobs: tuple[Blob, ...]


def problem(candidate: object) -> str:
    """Return what is wrong with a candidate; empty: nothing."""
    if not isinstance(candidate, EvidenceCandidate):
        return f"evidence must be a list of candidates, not {type(candidate).__name__}"
    data: object = candidate.data  # msgspec takes text for bytes in base64
    if not isinstance(data, bytes | None):
        return f"an evidence candidate's data is bytes, not {type(data).__name__}"
    try:
        msgspec.convert(
            msgspec.structs.asdict(candidate), EvidenceCandidate
        )  # a struct holds whatever it was made with
        canonical([candidate.kind, candidate.source, candidate.retrieved_at, candidate.metadata])
    except msgspec.ValidationError as error:
        return f"an evidence candidate is not valid: {error}"
    except NotCanonicalError as error:
        return f"an evidence candidate may carry JSON only: {error.message}"
    retrieved = 0 < candidate.retrieved_at <= MAX_INT
    if not (candidate.kind and candidate.source and retrieved) or len(candidate.kind) > _MAX_KIND:
        return "an evidence candidate needs kind, source and retrieved_at"
    found = _forbidden(candidate.metadata)
    return f"an evidence candidate may not carry {found!r}" if found else ""


def keep(candidates: Sequence[EvidenceCandidate], limits: EvidenceLimits, now: int) -> Kept:
    """Decide what is kept of each candidate, and until when; they have no `problem`."""
    until = now + limits.days * DAY if limits.days else None
    items: list[EvidenceItem] = []
    blobs: list[Blob] = []
    for candidate in candidates[: limits.items]:
        item, blob = _keep(candidate, limits, until)
        items.append(item)
        if blob is not None:
            blobs.append(blob)
    dropped = len(candidates) - len(items)
    if dropped > 0 and items:
        items[-1] = msgspec.structs.replace(items[-1], metadata={**items[-1].metadata, "dropped_items": dropped})
    return Kept(tuple(items), tuple(blobs))


def _keep(candidate: EvidenceCandidate, limits: EvidenceLimits, until: int | None) -> tuple[EvidenceItem, Blob | None]:
    data = candidate.data if candidate.data is not None else (candidate.text or "").encode("utf-8", "replace")
    source, kind = candidate.source, candidate.kind.lower()
    item = EvidenceItem(
        kind=candidate.kind,
        source=source if len(source) <= _MAX_SOURCE else source[: _MAX_SOURCE - 1] + "…",
        retrieved_at=candidate.retrieved_at,
        bytes=len(data),
    )
    if kind in NEVER:
        return _with(item, code=Code.EVIDENCE_REDACTED.name, hash_scope="unknown"), None
    item = _with(item, **_metadata(candidate, limits))
    if candidate.text is None and candidate.data is None:
        return item, None
    item = _with(item, hash=sha256(data))
    if candidate.data is not None:
        return _raw(item, data, limits, until)
    if len(data) <= limits.inline:
        return _with(item, storage="inline", inline=data.decode(), stored_bytes=len(data)), None
    if kind in CUT:
        text = data[: limits.inline].decode("utf-8", "ignore")
        cut = _with(item, storage="inline", inline=text, stored_bytes=len(text.encode()), truncated=True)
        return _with(cut, code=Code.EVIDENCE_INLINE_TOO_LARGE.name), None
    return _raw(_with(item, code=Code.EVIDENCE_INLINE_TOO_LARGE.name), data, limits, until)


def _raw(
    item: EvidenceItem, data: bytes, limits: EvidenceLimits, until: int | None
) -> tuple[EvidenceItem, Blob | None]:
    if len(data) > limits.raw:
        return _with(item, code=Code.EVIDENCE_RAW_TOO_LARGE.name), None
    return _with(item, storage="raw", raw_pointer=item.hash, stored_bytes=len(data)), Blob(item.hash, data, until)


def _with(item: EvidenceItem, **changes: Any) -> EvidenceItem:
    return msgspec.structs.replace(item, **changes)


def _metadata(candidate: EvidenceCandidate, limits: EvidenceLimits) -> dict[str, Any]:
    """The metadata as a replay gives it, unless it is so large that it must be content."""
    encoded = msgspec.json.encode(candidate.metadata)
    if len(encoded) > limits.inline:
        return {"metadata": {"omitted_bytes": len(encoded)}, "code": Code.EVIDENCE_INLINE_TOO_LARGE.name}
    return {"metadata": msgspec.json.decode(encoded)}


def _forbidden(value: Any) -> str:
    """The first forbidden key within a JSON value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key.lower() in FORBIDDEN:
                return str(key)
            if found := _forbidden(inner):
                return found
    elif isinstance(value, list | tuple):
        for inner in value:
            if found := _forbidden(inner):
                return found
    return ""
