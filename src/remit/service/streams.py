"""Streams: their events, the story they tell, and whether their chains hold."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from remit.errors import ChainBrokenError
from remit.gateway.confirmations import KIND as CONFIRMATION
from remit.journal.event import Event, Head, HeadQuery
from remit.service.heads import head_of, stream_named
from remit.service.views import VerifyReport
from remit.trace.narrative import Narrative, narrate

if TYPE_CHECKING:
    from remit.journal.journal import Journal

_RECENT: Final = 10_000
_PAGE: Final = 500


class Streams:
    """The streams of one journal."""

    def __init__(self, journal: Journal) -> None:
        """Look at `journal`."""
        self._journal = journal

    # --- queries

    def name(self, identifier: str) -> str:
        """The stream of a job or session."""
        return stream_named(identifier)

    async def events(self, stream: str, after: int = 0) -> list[Event]:
        """A stream's events."""
        return await self._journal.read(stream, after)

    def follow(self, stream: str, after: int = 0) -> AsyncIterator[Event]:
        """A stream's events, then each new one until the stream is closed."""
        return self._journal.follow(stream, after)

    async def narrative(self, identifier: str) -> Narrative:
        """The story of a job or session, with who allowed what. Raises NotFoundError."""
        await head_of(self._journal, identifier)
        stream = stream_named(identifier)
        # Before its questions: a call that ran is never shown as one that waits for approval.
        events = await self._journal.read(stream)
        query = HeadQuery(kind=CONFIRMATION, prefix=f"{stream}/", limit=_RECENT)
        asked = {
            head.labels.get("id", head.stream): await self._journal.read(head.stream)
            for head in await self._journal.heads(query)
        }
        return narrate(events, asked)

    async def verify(self, identifier: str | None = None) -> VerifyReport:
        """Check the chains of a job or session and of all that belongs to it, or of the whole journal."""
        if identifier is not None:
            await head_of(self._journal, identifier)
        streams = events = 0
        problems: list[str] = []
        async for head in self._heads(stream_named(identifier) if identifier else ""):
            streams += 1
            try:
                events += await self._journal.verify(head.stream)
            except ChainBrokenError as error:
                problems.append(error.message)
        return VerifyReport(streams=streams, events=events, problems=tuple(problems))

    # --- common

    async def _heads(self, stream: str) -> AsyncIterator[Head]:
        if stream:
            own = await self._journal.head(stream)
            if own is not None:
                yield own
        prefix, before = f"{stream}/" if stream else "", None
        while page := await self._journal.heads(HeadQuery(prefix=prefix, before=before, limit=_PAGE)):
            for head in page:
                yield head
            before = page[-1].stream
