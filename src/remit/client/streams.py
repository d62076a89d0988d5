"""A server's records of jobs and sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Literal

import msgspec

from remit.api.routes.history import EventQuery, PieceView
from remit.client.connection import FAILURES, MAX_ANSWER, Connection
from remit.client.twin import Twin
from remit.codes import Code
from remit.errors import RemitError, ServerError, UsageError
from remit.journal.event import Event
from remit.jsonrpc.events import Events
from remit.jsonrpc.lines import LineTooLongError
from remit.models.reply import Delta
from remit.models.tail import Piece
from remit.record.heads import stream_named
from remit.record.views import VerifyReport
from remit.redact import line
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
        return follow(self._connection, stream, _identifier(stream), after)

    def said(self, identifier: str) -> AsyncIterator[Piece]:
        return listen(self._connection, identifier)

    async def verify(
        self, identifier: str | None = None, *, notes: str = "", keys: tuple[str, ...] = (), stamp_roots: str = ""
    ) -> VerifyReport:
        """Check the chains of a job or session. Raise UsageError (LOCAL_ONLY) for the whole journal."""
        if identifier is None or notes or keys or stamp_roots:
            why = "a whole journal, and checkpoints, can only be checked on its own machine"
            raise UsageError(why, code=Code.LOCAL_ONLY, remedy="Name a job, or run the check on the server's machine.")
        report: VerifyReport = await self._connection.ask("jobs.verify", identifier, held_s=_VERIFY_S)
        return report


def _identifier(stream: str) -> str:
    return stream.partition("/")[2]


_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
_ATTEMPTS: Final = 12
"""Attempts in a row that bring no event, before the server is given up: half a minute."""


class Sent(msgspec.Struct, frozen=True):
    """An event as a server sends it."""

    seq: int
    kind: str
    at: int
    data: msgspec.Raw
    hash: str

    def event(self, stream: str) -> Event:
        """The event as the journal has it."""
        return Event(stream, self.seq, self.kind, self.at, bytes(self.data), bytes.fromhex(self.hash))


async def follow(connection: Connection, stream: str, identifier: str, after: int) -> AsyncIterator[Event]:
    """A stream's events after a place, then each new one until the stream is closed.

    Raise NotFoundError, or ServerError once the server stays away.
    """
    last, failed = after, 0
    while True:
        try:
            async for event in _once(connection, stream, identifier, last):
                last, failed = event.seq, 0
                yield event
        except (RemitError, *FAILURES) as error:
            failed += 1
            passing = not isinstance(error, RemitError) or error.code.retryable
            if not passing or failed >= _ATTEMPTS:
                raise (error if isinstance(error, RemitError) else _lost(connection, error)) from error
        else:
            return
        await connection.clock.sleep(min(_FIRST_PAUSE_S * 2 ** (failed - 1), _LONGEST_PAUSE_S))


async def _once(connection: Connection, stream: str, identifier: str, after: int) -> AsyncIterator[Event]:
    cut = Events(MAX_ANSWER)
    async with connection.stream("jobs.follow", identifier, after=after) as chunks:
        async for chunk in chunks:
            try:
                sent = [msgspec.json.decode(each.data, type=Sent).event(stream) for each in cut.feed(chunk)]
            except (msgspec.DecodeError, LineTooLongError, ValueError) as error:
                why = f"an event of {identifier} cannot be read: {line(str(error))}"
                raise ServerError(why, code=Code.SERVER_ANSWER_INVALID) from error
            for event in sent:
                yield event


async def listen(connection: Connection, identifier: str) -> AsyncIterator[Piece]:
    """Give what models say to a job while they say it; a connection that fails ends it, for nothing depends on it.

    Raise NotFoundError, or ServerError if the server refuses.
    """
    cut = Events(MAX_ANSWER)
    try:
        async with connection.stream("jobs.said", identifier, after=0) as chunks:
            async for chunk in chunks:
                for each in cut.feed(chunk):
                    view = msgspec.json.decode(each.data, type=PieceView)
                    delta = Delta(msgspec.convert(each.kind, Literal["text", "reasoning", "call"]), view.text)
                    yield Piece(view.step, view.offset, delta)
    except (msgspec.DecodeError, LineTooLongError, ValueError) as error:
        why = f"a piece of {identifier} cannot be read: {line(str(error))}"
        raise ServerError(why, code=Code.SERVER_ANSWER_INVALID) from error
    except FAILURES:
        return


def _lost(connection: Connection, error: BaseException) -> ServerError:
    why = f"{connection.url}: {line(str(error)) or type(error).__name__}"
    return ServerError(why, remedy="Check that `remit serve` runs there; what was recorded is not lost.")
