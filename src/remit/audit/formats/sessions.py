"""Sessions of a recorder that signed while a record was made: its checkpoints are the heartbeats of AEL's runs."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.journal.event import HeadQuery
from remit.journal.kinds import decode

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal

_KIND: Final = "recorder"
_leaves: Final = msgspec.json.Decoder(list[tuple[str, int, str]]).decode


class Beat(NamedTuple):
    """A checkpoint."""

    at: int
    """When it was signed, in microseconds since the Unix epoch."""
    signed: dict[str, Any]
    """Its size and root, and the line of the signature that was made then."""
    ends: Mapping[str, int]
    """The number of the newest event that it covers, by stream; of the streams that were asked for."""


class Session(NamedTuple):
    """A session of the recorder."""

    stream: str
    key: str
    """The public key that signed the checkpoints, as C2SP writes it."""
    began: int
    seconds: int
    """A checkpoint follows the one before within this time."""
    beats: list[Beat]
    closed: int | None
    """When it ended by itself; None: it goes on, or its process died."""


async def sessions_of(journal: Journal, streams: Container[str], since: int, until: int) -> list[Session]:
    """Return the sessions that went on between two times, the first one first. Raise JournalError."""
    found, before = list[Session](), None
    while page := await journal.heads(HeadQuery(kind=_KIND, before=before)):
        for head in page:
            if head.created_at <= until and (not head.closed or head.updated_at >= since):
                found.append(await _session(journal, await journal.read(head.stream), streams))
        before = page[-1].stream
    return sorted(found, key=lambda session: session.began)


async def _session(journal: Journal, events: list[Event], streams: Container[str]) -> Session:
    opened: Any = decode(events[0].kind, events[0].data)
    beats, closed = list[Beat](), None
    for event in events[1:]:
        said: Any = decode(event.kind, event.data)
        if event.kind == "recorder_checkpoint":
            leaves = _leaves(await journal.value(said.leaves, said.leaves_blob) or b"[]")
            ends = {stream: seq for stream, seq, _ in leaves if stream in streams}
            beats.append(Beat(event.at, {"size": said.size, "root": said.root, "signature": said.signature}, ends))
        elif event.kind == "recorder_closed" and said.reason != "lost":
            closed = event.at
    return Session(events[0].stream, opened.key, events[0].at, opened.every_seconds, beats, closed)
