"""Server-sent events: an answer that goes on for as long as there is something to tell (HTML standard, section 9.2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from remit.api.route import SentEvent
    from remit.http.access import RequestPlaces

BEAT_S: Final = 15.0
"""Seconds after which a comment shows that the connection is alive."""
SEND_S: Final = 30.0
"""Seconds that a client may take to read what was sent, before it is given up."""
_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_encode: Final = msgspec.json.Encoder().encode


async def serve_events(events: AsyncIterator[SentEvent], places: RequestPlaces, receive: Receive, send: Send) -> None:
    """Send events until there are no more, the client leaves or reads too slowly, or the server stops.

    The first event decides whether this is an answer or a problem: nothing is sent before it, or before a beat.
    """
    feed = asyncio.ensure_future(anext(events, None))
    ends = [asyncio.ensure_future(left(receive)), asyncio.ensure_future(places.closing.wait())]
    begun = False
    try:
        while True:
            await asyncio.wait({feed, *ends}, timeout=BEAT_S, return_when=asyncio.FIRST_COMPLETED)
            if any(end.done() for end in ends):
                return
            sent = feed.result() if feed.done() else None
            if not begun:
                begun = True
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if feed.done():
                if sent is None:
                    await _send(send, b"", more=False)
                    return
                feed = asyncio.ensure_future(anext(events, None))
            await _send(send, b": beat\n\n" if sent is None else _frame(sent), more=True)
    except TimeoutError:
        return  # a client that does not read: it comes back with Last-Event-ID
    finally:
        for task in (feed, *ends):
            task.cancel()
        await asyncio.wait({feed, *ends})
        if hasattr(events, "aclose"):
            with suppress(RuntimeError):
                await events.aclose()


async def _send(send: Send, body: bytes, *, more: bool) -> None:
    async with asyncio.timeout(SEND_S):
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def left(receive: Receive) -> None:
    """Return once the client has left; what it still sends is not read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _frame(sent: SentEvent) -> bytes:
    data = _encode(sent.data).replace(b"\n", b"\ndata: ")
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (sent.id.encode(), sent.event.encode(), data)
