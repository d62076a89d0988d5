from __future__ import annotations

import mcp_types as types
from mcp.server.streamable_http import EventMessage

from tests.peers.conformance_server import KeptEvents


def message(number: int) -> types.JSONRPCMessage:
    return types.JSONRPCResponse(jsonrpc="2.0", id=number, result={})


async def replayed(kept: KeptEvents, after: str) -> tuple[str | None, list[EventMessage]]:
    sent: list[EventMessage] = []

    async def send(event: EventMessage) -> None:
        sent.append(event)

    return await kept.replay_events_after(after, send), sent


async def test_a_client_that_lost_a_stream_is_sent_what_followed_on_that_stream() -> None:
    kept = KeptEvents()
    first = await kept.store_event("one", None)
    await kept.store_event("two", message(1))
    second = await kept.store_event("one", message(2))

    assert await replayed(kept, first) == ("one", [EventMessage(message(2), second)])
    assert await replayed(kept, second) == ("one", [])


async def test_an_event_that_is_not_known_is_not_replayed() -> None:
    assert await replayed(KeptEvents(), "7") == (None, [])
