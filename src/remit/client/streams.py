"""What a server has recorded of jobs and sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from remit.api.routes.history import EventQuery
from remit.client.following import Sent, follow, listen
from remit.client.twin import Twin
from remit.codes import Code
from remit.errors import UsageError
from remit.journal.event import Event
from remit.models.tail import Piece
from remit.record.heads import stream_named
from remit.record.views import VerifyReport
from remit.service.streams import Streams

_PAGE: Final = 1_000
_VERIFY_S: Final = 600.0


class _Page(msgspec.Struct, frozen=True):
    """A page of events with their recorded bytes."""

    items: list[Sent]
    next: int | None


class RemoteStreams(Twin, Streams):
    """The streams of a server."""

    def name(self, identifier: str) -> str:
        return stream_named(identifier)

    async def events(self, stream: str, after: int = 0) -> list[Event]:
        found: list[Event] = []
        position: int | None = after
        while position is not None:
            query = EventQuery(after=position, limit=_PAGE)
            page: _Page = await self._connection.ask("jobs.events", _identifier(stream), query=query, answer=_Page)
            found += [one.event(stream) for one in page.items]
            position = page.next
        return found

    def follow(self, stream: str, after: int = 0) -> AsyncIterator[Event]:
        """The same, then each new event until the stream is closed; a connection that breaks is taken up again."""
        return follow(self._connection, stream, _identifier(stream), after)

    def said(self, identifier: str) -> AsyncIterator[Piece]:
        """What models say to a job while they say it, if the server works on it; ends with the connection."""
        return listen(self._connection, identifier)

    async def verify(self, identifier: str | None = None) -> VerifyReport:
        """Check the chains of a job or session. Raise UsageError (LOCAL_ONLY) for the whole journal."""
        if identifier is None:
            why = "a whole journal can only be checked on its own machine"
            raise UsageError(why, code=Code.LOCAL_ONLY, remedy="Name a job, or run the check on the server's machine.")
        report: VerifyReport = await self._connection.ask("jobs.verify", identifier, held_s=_VERIFY_S)
        return report


def _identifier(stream: str) -> str:
    return stream.partition("/")[2]
