"""The work of a job or session, over HTTP: its story, its events, live too, and whether the record holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from remit.api.route import ApiRequest, Route, SentEvent
from remit.canonical import MAX_INT
from remit.codes import Code
from remit.http.problem import HttpProblem
from remit.jobs.replay import ReplayReport
from remit.journal.event import Event

if TYPE_CHECKING:
    from remit.service.streams import Streams

_PAGE: Final = 1_000


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded event."""

    seq: int
    kind: str
    at: int
    """Microseconds since the Unix epoch."""
    data: msgspec.Raw
    """The payload: the very bytes that were recorded."""
    hash: str
    """The chain's value after it, hexadecimal."""


class ReplayQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How to replay."""

    anyway: bool = False


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which events."""

    after: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=_PAGE)] = 100


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events in order."""

    items: list[EventView]
    next: int | None
    """`after` of the next page; null if this is the last."""


class PieceView(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of what a model is saying."""

    step: str
    """The question's place in the job."""
    offset: int
    """Characters said before it; a gap says that older pieces are gone."""
    text: str


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What running a job's recipe again on its record came to."""

    report: ReplayReport


async def events(request: ApiRequest) -> EventPage:
    """Show recorded events in their order, page by page."""
    query: EventQuery = request.query
    stream = request.service.streams.name(await _known(request))
    read_events = (await request.service.streams.events(stream, query.after))[: query.limit]
    items = [_event(event) for event in read_events]
    return EventPage(items=items, next=read_events[-1].seq if len(read_events) == query.limit else None)


async def follow(request: ApiRequest) -> AsyncIterator[SentEvent]:
    """Send each event as it is recorded, until the job has ended; `Last-Event-ID` goes on after that event."""
    last = request.headers.get("last-event-id", "0")
    if not (last.isascii() and last.isdigit() and len(last) <= len(str(MAX_INT)) and int(last) <= MAX_INT):
        raise HttpProblem(Code.REQUEST_INVALID, "Last-Event-ID is the id of an event.")
    stream = request.service.streams.name(await _known(request))
    async for event in request.service.streams.follow(stream, int(last)):
        yield SentEvent(str(event.seq), event.kind, _event(event))


async def said(request: ApiRequest) -> AsyncIterator[SentEvent]:
    """Send what models say while they say it, if this server works on the job, until the job has ended.

    Nothing of it is recorded yet. The event is the kind of piece: `text`, `reasoning` or `call`.
    """
    job = await _known(request)
    streams = request.service.streams
    pieces, ended = streams.said(job), asyncio.ensure_future(_ended(streams, streams.name(job)))
    piece = asyncio.ensure_future(anext(pieces))
    try:
        while True:
            await asyncio.wait({piece, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not piece.done():
                return
            result = piece.result()
            view = PieceView(step=result.step, offset=result.offset, text=result.delta.text)
            yield SentEvent(str(result.offset), result.delta.kind, view)
            piece = asyncio.ensure_future(anext(pieces))
    finally:
        for task in (piece, ended):
            task.cancel()
        await asyncio.wait({piece, ended})


async def _ended(streams: Streams, stream: str) -> None:
    """Return once a job or session has ended."""
    async for _ in streams.follow(stream):
        pass


async def replay(request: ApiRequest) -> Replayed:
    """Run a job's recipe again on its record alone. Nothing is called; the first difference is shown.

    What `jobs.mismatch` refuses is refused here too, unless `anyway` is set.
    """
    replay_report = await request.service.jobs.replay(request.path["job"], anyway=request.query.anyway)
    return Replayed(report=replay_report)


async def _known(request: ApiRequest) -> str:
    return await request.service.jobs.find(request.path["job"])


def _event(event: Event) -> EventView:
    return EventView(seq=event.seq, kind=event.kind, at=event.at, data=msgspec.Raw(event.data), hash=event.hash.hex())


_ONE: Final = "/v1/jobs/{job}"
_FOUND: Final = (Code.JOB_NOT_FOUND,)

ROUTES: Final = (
    Route(
        method="GET",
        path=f"{_ONE}/events",
        name="jobs.events",
        scope="read",
        summary="Show recorded events.",
        handler=events,
        query=EventQuery,
        answer=EventPage,
        codes=_FOUND,
    ),
    Route(
        method="GET",
        path=f"{_ONE}/events/live",
        name="jobs.follow",
        scope="read",
        summary="Follow events as they are recorded.",
        stream=follow,
        codes=(*_FOUND, Code.REQUEST_INVALID),
    ),
    Route(
        method="GET",
        path=f"{_ONE}/said/live",
        name="jobs.said",
        scope="read",
        summary="Follow what models say.",
        stream=said,
        codes=_FOUND,
    ),
    Route(
        method="POST",
        path=f"{_ONE}/replay",
        name="jobs.replay",
        scope="read",
        summary="Run a job again on its record alone.",
        handler=replay,
        query=ReplayQuery,
        answer=Replayed,
        codes=(
            *_FOUND,
            Code.UNKNOWN_RECIPE,
            Code.EXECUTION_VERSION_MISMATCH,
            Code.TOOL_SCHEMA_DRIFT,
            Code.MODEL_DRIFT,
            Code.JOB_NOT_REPLAYABLE,
        ),
    ),
)
