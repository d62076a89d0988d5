"""The streams that open pages listen to, one for each tab that is seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.api.events import serve_events
from remit.api.part import HttpSessions, problem_of
from remit.api.route import SentEvent, pairs_of, query_of
from remit.errors import RemitError
from remit.http.access import RequestPlaces
from remit.http.problem import HttpProblem
from remit.pages.live import Make, PageChannels
from remit.pages.page import SAFE, Memory, Page, PageRequest, PageView, find, zone_of
from remit.pages.renderer import entries_of, render, shell_for
from remit.randomness import salt
from remit.service.reach import check_reach
from remit.tasks import first

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from remit.clock import Clock
    from remit.http.router import RouterRequest
    from remit.pages.entry import ConsoleEntry, Visitor
    from remit.pages.live import Changed
    from remit.pages.page import Page
    from remit.service.service import Service


PATH: Final = "/live"
STATUS: Final = "/live/status"
STREAMS: Final = 500
"""Streams of one principal at once."""
_OUT: Final = 401
_FINE: Final = 204


class FeedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which page, and what the reader has of it."""

    page: str
    """Its path and query."""
    last: str = ""
    """The identifier of the last event."""


class LiveFeed:
    """Sends pages what changed."""

    def __init__(
        self,
        service: Service,
        pages: Sequence[Page],
        entry: ConsoleEntry,
        clock: Clock,
        sessions: HttpSessions,
        memory: Memory,
    ) -> None:
        self._memory = memory
        self._service = service
        self._entries = entries_of(pages)
        self._sessions = sessions
        self._pages = [page for page in pages if page.live]
        self._entry = entry
        self._clock = clock
        self._places = RequestPlaces(STREAMS)
        self._channels = PageChannels(clock)
        self._mark = salt(16).hex().encode()
        """Stands for a reader's form token in what is made once for all."""

    def close(self) -> None:
        """End every stream."""
        self._places.closing.set()

    async def answer(self, scope: Any, request: RouterRequest, visitor: Visitor, receive: Receive, send: Send) -> None:
        """Answer with a stream, or say why not; never with another page. Raise Problem."""
        if not visitor.known:
            await _status(send, _OUT)
            return
        try:
            query: FeedQuery = pairs_of(scope["query_string"], FeedQuery, "The query")
            path, _, raw = query.page.partition("?")
            page, names = find(self._pages, "GET", path)
            request.access.require(page.scope)
            await check_reach(self._service, request.access, names)
            values = query_of(page.query, raw.encode("latin-1", "replace"))
        except (HttpProblem, RemitError) as error:
            await _status(send, problem_of(error).status)
            return
        if scope["path"] == STATUS:
            await _status(send, _FINE)
            return
        zone = zone_of(request.headers)
        last = query.last or request.headers.get("last-event-id", "")
        news = news_of(self._service, page, names)
        make = self._maker(page, names, values, request, visitor, query.page)
        key = (query.page, visitor.access, str(zone))
        try:
            async with (
                self._places.taken(visitor.access.principal or ""),
                self._channels.followed(key, make, news) as channel,
            ):
                await serve_events(self._sent(channel.follow(last), visitor), self._places, receive, _guarded(send))
        except Exception as error:
            raise problem_of(error) from error

    def _maker(
        self, page: Page, names: dict[str, str], values: Any, request: RouterRequest, visitor: Visitor, here: str
    ) -> Make:
        """Return what makes the page again; the same bytes while its mark stays the same."""
        zone, marked, made = zone_of(request.headers), object(), b""

        async def make() -> bytes:
            nonlocal marked, made
            page_request = PageRequest(
                service=self._service,
                path=names,
                query=values,
                form=None,
                access=request.access,
                now=self._clock.now(),
                zone=zone,
                here=here,
                session=lambda: self._sessions.of(request.access.principal or ""),
                memory=self._memory,
            )
            mark = await page.mark(page_request) if page.mark is not None else object()
            if mark != marked:
                view = await page.handler(page_request)
                if isinstance(view, PageView):
                    shell = await shell_for(
                        self._entries,
                        self._service,
                        self._entry,
                        visitor,
                        self._mark.decode(),
                        page_request.now,
                        zone,
                        here,
                    )
                    made = render(view, shell)
                marked = mark
            return made

        return make

    async def _sent(self, events: AsyncIterator[SentEvent], visitor: Visitor) -> AsyncIterator[SentEvent]:
        """Each event with the reader's own form token, for as long as their session lasts."""
        async for sent in events:
            if not await self._entry.lasts(visitor):
                return
            own = bytes(sent.data).replace(self._mark, visitor.csrf.encode())
            yield SentEvent(sent.id, sent.event, msgspec.Raw(own))


async def _status(send: Send, status: int) -> None:
    headers = [(name.encode(), text.encode()) for name, text in {**SAFE, "cache-control": "no-store"}.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _guarded(send: Send) -> Send:
    """Sends with the headers of every page."""

    async def guarded(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            more = [(name.encode(), text.encode()) for name, text in SAFE.items()]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return guarded


def news_of(service: Service, page: Page, names: dict[str, str]) -> AbstractContextManager[Changed]:
    """Return what waits for the news of a page at this path, within the block."""
    match page.live:
        case "words":
            return nullcontext(_Words(service, names["job"]).changed)
        case "tools":
            return _tools(service)
        case "events":
            return nullcontext(service.streams.changed)
        case _:
            return nullcontext(service.streams.heads_changed)


class _Words:
    """News of the journal, and of what models say to one job."""

    def __init__(self, service: Service, reference: str) -> None:
        self._service = service
        self._reference = reference
        self._utterances = 0

    async def changed(self, mark: int) -> int:
        """Wait for either; the new mark of the journal."""
        streams = self._service.streams
        job = await self._service.jobs.find(self._reference)
        reached, utterances = await first(streams.changed(mark), streams.heard(job, self._utterances))
        self._utterances = self._utterances if utterances is None else utterances
        return mark if reached is None else reached


@contextmanager
def _tools(service: Service) -> Iterator[Changed]:
    """News of whole streams, and of the tools."""
    event = asyncio.Event()

    async def changed(mark: int) -> int:
        reached, _ = await first(service.streams.heads_changed(mark), event.wait())
        event.clear()
        return mark if reached is None else reached

    end = service.tools.watch(event.set)
    try:
        yield changed
    finally:
        end()
