"""The official client connected to a face: over lines, over HTTP, each in both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, NamedTuple

import anyio
import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from remit import Remit
from remit.clock import SystemClock
from remit.http.access import OPERATOR, REQUESTS, SCOPES, Access
from remit.http.guard import Guard, Token, digest_of
from remit.http.router import PartMount, Router
from remit.http.server import listen, serve
from remit.journal.event import HeadQuery
from remit.journal.kinds import Payload, decode
from remit.jsonrpc.dispatcher import Dispatcher
from remit.jsonrpc.message import RpcMessage
from remit.mcp_server.endpoint import Endpoint
from remit.mcp_server.offer import Names, WireNames
from remit.mcp_server.relay import Relay
from remit.mcp_server.relays import Relays
from remit.mcp_server.request import PATH, AskingTerms
from remit.mcp_server.server import ToolServer
from remit.mcp_server.stdio import OneClient
from tests.patience import PATIENCE_S

MODERN = "2026-07-28"
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of http alone: to read the machine's authorities takes as long as most tests here."""


class Link(NamedTuple):
    """How a client is connected."""

    transport: str
    era: str

    @property
    def modern(self) -> bool:
        return self.era == MODERN

    @asynccontextmanager
    async def connect(self, face: ToolServer, **given: Any) -> AsyncIterator[Client]:
        """A client of its own; over HTTP, with a server of its own."""
        given = {"mode": self.era, "cache": None, **given}
        match self.transport:
            case "http":
                # With somebody before it, as on stdio.
                person = [Token(digest_of("of-a-person"), OPERATOR)]
                async with serving(face, clients=person) as url, at(url, token="of-a-person", **given) as client:
                    yield client
            case _:
                async with Client(lines(face), **given) as client:
                    yield client


LINKS = [Link(transport, era) for transport in ("lines", "http") for era in ("legacy", MODERN)]


@asynccontextmanager
async def facing(
    remit: Remit,
    *,
    names: Names | None = None,
    principal: str = "tester",
    transport: str = "stdio",
    terms: AskingTerms = AskingTerms(),  # noqa: B008 - a value
    relay: Relay | Relays | None = None,
) -> AsyncIterator[ToolServer]:
    """A face of an open Remit."""
    names = names or WireNames()
    face = ToolServer(remit.service, names, principal=principal, transport=transport, terms=terms, relay=relay)
    try:
        yield face
    finally:
        await face.close()


@asynccontextmanager
async def lines(face: ToolServer) -> AsyncIterator[tuple[Any, Any]]:
    """The server's half of a stdio conversation, without the pipes."""
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](1_000)
    outgoing, out_of = anyio.create_memory_object_stream[SessionMessage](1_000)
    wire = _Wire(into)

    async def pump() -> None:
        async for message in out_of:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            wire.dispatcher.received(text.encode())

    tasks = [asyncio.create_task(pump()), asyncio.create_task(OneClient(face, wire.dispatcher).run())]
    try:
        yield incoming, outgoing
    finally:
        wire.dispatcher.close("the client left")
        tasks[0].cancel()
        await asyncio.wait(tasks)
        for stream in (into, incoming, outgoing, out_of):
            stream.close()


class _Wire:
    """Carries what the server writes to the client's stream."""

    def __init__(self, into: Any) -> None:
        self._into = into
        self.dispatcher = Dispatcher(self, inline=frozenset({"initialize"}), answers_invalid=True)

    def send(self, message: RpcMessage) -> None:
        read = types.jsonrpc_message_adapter.validate_python(json.loads(message.body))
        self._into.send_nowait(SessionMessage(read))

    async def drained(self) -> None:
        return


@contextmanager
def listening() -> Iterator[socket.socket]:
    """A socket on a port that the kernel chose."""
    taken = listen("127.0.0.1", 0)
    try:
        yield taken
    finally:
        taken.close()


def person(name: str) -> Token:
    """The token of a client that may do all; its text is `token-of-<name>`."""
    return Token(digest_of(f"token-of-{name}"), Access(name, SCOPES, dialog=True))


def application(
    face: ToolServer,
    *,
    host: str = "127.0.0.1",
    clients: Sequence[Token] = (),
    hosts: Sequence[str] = (),
    requests: int = REQUESTS,
) -> Router:
    """What is served."""
    endpoint = Endpoint(face, requests=requests)
    return Router(Guard.of(host, hosts, clients, SystemClock()), [PartMount(PATH, endpoint, "call")])


@asynccontextmanager
async def serving(
    face: ToolServer, *, clients: Sequence[Token] = (), hosts: Sequence[str] = (), requests: int = REQUESTS
) -> AsyncIterator[str]:
    """The face over HTTP, until the block ends; its URL."""
    stop = asyncio.Event()
    with listening() as taken:
        app = application(face, hosts=hosts, clients=clients, requests=requests)
        task = asyncio.create_task(serve(app, taken, stop))
        try:
            yield f"http://127.0.0.1:{taken.getsockname()[1]}{PATH}"
        finally:
            stop.set()
            await task


@asynccontextmanager
async def at(url: str, *, token: str = "", **given: Any) -> AsyncIterator[Client]:
    """The official client of a URL."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, verify=NO_TLS) as carrier,
        Client(_streams(url, carrier), **given) as client,
    ):
        yield client


def _streams(url: str, carrier: httpx2.AsyncClient) -> AbstractAsyncContextManager[Any]:
    return streamable_http_client(url, http_client=carrier)


async def raw(client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a request as it came, without the SDK's models."""
    body = dict(params)
    opts: Any = {}
    client.session._stamp({"method": method, "params": body}, opts)
    return await client.session._dispatcher.send_raw_request(method, body, opts)


async def sessions(remit: Remit) -> dict[str, list[Payload]]:
    """What stands in the sessions' streams, by stream, the oldest first."""
    journal = remit.runtime.journal
    heads = reversed(await journal.heads(HeadQuery(kind="session", limit=100)))
    found: dict[str, list[Payload]] = {}
    for head in heads:
        read = [decode(event.kind, event.data) for event in await journal.read(head.stream)]
        found[head.stream] = [event for event in read if event is not None]
        assert len(found[head.stream]) == len(read)
    return found


async def kinds(remit: Remit) -> list[str]:
    """The kinds of events in the only session, then in those of its calls that ask a person."""
    (events,) = (await sessions(remit)).values()
    journal = remit.runtime.journal
    calls = reversed(await journal.heads(HeadQuery(kind="call", limit=100)))
    asked = [event.kind for head in calls for event in await journal.read(head.stream)]
    return [*(event.KIND for event in events), *asked]


def text_of(result: types.CallToolResult) -> str:
    """The only text of a result."""
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def code_of(result: types.CallToolResult) -> str:
    """The code of a failure."""
    assert result.is_error
    assert result.meta is not None
    code: str = result.meta["dev.remit/outcome"]["code"]
    return code
