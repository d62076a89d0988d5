"""One request on its way to a provider and its answer on the way back: bytes are passed as they come, and read beside.

Reading from the provider and writing to the program fail apart: if one leaves, the other is not blamed for it. An
answer is complete when its terminal event came, whatever the connections say afterwards.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import aiohttp
import msgspec
from yarl import URL

from remit.canonical import sha256
from remit.codes import Code
from remit.http.problem import HttpProblem
from remit.journal.blobs import BlobRef
from remit.journal.event import Blob
from remit.jsonrpc.stream import EventReader, LineTooLongError
from remit.models.faults import CutAnswer, ModelFault, Rejected, ServerFault, Timeout
from remit.models.message import Message
from remit.models.port import Sending
from remit.models.remote import (
    CONNECT_S,
    MAX_EVENT_BYTES,
    MAX_REPLY_BYTES,
    connection_faults,
    fault_of,
    redirected,
)
from remit.models.reply import Delta, ModelReply, TokenUsage, Watch
from remit.models.wires.wire import WireFailure
from remit.parts.model_gateway.kinds import End, ModelGatewayAnswered
from remit.parts.model_gateway.wires import closed_calls, whole_events
from remit.regex import regex

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.models.names import ModelName
    from remit.models.prompt import Ask, OfferedTools
    from remit.parts.model_gateway.wires import Request, WireRoute

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]
_OK: Final = 200
_FAILS: Final = 400
_HOPS: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of one connection alone (RFC 9110, section 7.6.1)."""
_KEYS: Final = frozenset({"authorization", "x-api-key", "x-goog-api-key", "cookie", "traceparent", "tracestate"})
"""Headers that stay here: Remit's token stands in them, or they are about this connection."""
_READABLE: Final = ("gzip", "deflate")
_KEPT_HEADERS: Final = ("content-type", "content-encoding", "request-id", "x-request-id", "retry-after")
_DATA: Final = regex(rb"^data: ?(.*)$", re.MULTILINE)
_MAX_ERROR_BYTES: Final = 64 * 1024
_BLOCK: Final = b"\n\n"


class Upstream(NamedTuple):
    """A provider: where it is, and its key."""

    url: str
    key: str
    client: aiohttp.ClientSession


def http_client(patience_s: float) -> aiohttp.ClientSession:
    """Return a client that changes no byte of what it is given; an answer may be silent for `patience_s` seconds."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=patience_s),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("accept-encoding", "user-agent", "content-type", "accept"),
        max_line_size=64 * 1024,
        max_field_size=64 * 1024,
    )


class Keeping(NamedTuple):
    """The part of an answer that is kept."""

    bytes: int
    """So many of it are recorded."""
    stop: bool
    """Whether it is cut off at its provider once the program is gone."""


class Client:
    """The program's end of an exchange; what it takes, and when it left."""

    def __init__(self, send: Send, receive: Receive) -> None:
        self._send = send
        self._receive = receive
        self._watching: asyncio.Task[None] | None = None
        self.gone = asyncio.Event()
        self.status = 0
        self.pieces = 0
        self.ended = False
        """Whether the answer ended well, as far as the provider is concerned."""
        self.gone_after: int | None = None

    @property
    def started(self) -> bool:
        """Return whether an answer has begun."""
        return self.status != 0

    def watch(self) -> None:
        """Notice from now on that the program leaves; until then nothing is waited for."""
        if self._watching is None:
            self._watching = asyncio.create_task(self.left())

    def leave(self) -> None:
        """Look no longer whether it leaves."""
        if self._watching is not None:
            self._watching.cancel()

    async def left(self) -> None:
        """Wait until the program has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone.set()

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Begin the answer."""
        self.status = status
        await self._write({"type": "http.response.start", "status": status, "headers": headers})

    async def piece(self, data: bytes) -> None:
        """Hand a piece on; nothing happens once the program is gone."""
        self.pieces += 1
        await self._write({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the answer well."""
        self.ended = True
        await self._write({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, message: dict[str, Any]) -> None:
        if self.gone.is_set():
            if self.gone_after is None:
                self.gone_after = max(0, self.pieces - 1)
            return
        try:
            await self._send(message)
        except OSError:
            self.gone.set()


class ExchangeAnswer:
    """The answer of a provider, read beside being passed on."""

    def __init__(self, route: WireRoute, ask_id: str, producer: str, keep: int, watch: Watch) -> None:
        row = self._row = route.row
        self._usage = TokenUsage() if route.kind == "count" else None
        self._reducer = row.reducer(ask_id, producer) if row is not None else None
        self._watch = watch
        self._keep = keep
        self._data = bytearray()
        self._rest = b""
        self._events: EventReader | None = None
        self._inflate: Any = None
        self._plain = 0
        self.streams = False
        self.size = 0
        self.fault: ModelFault | None = None

    def begin(self, streams: bool, encoding: str) -> None:
        """Say whether events come, and how they are compressed."""
        self.streams = streams
        if encoding in _READABLE:
            self._inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | (16 if encoding == "gzip" else 0))
        elif encoding not in {"", "identity"}:
            self._lost(f"the answer is compressed as {encoding}, which is not read")

    def feed(self, data: bytes) -> None:
        """Take a piece as it came."""
        self.size += len(data)
        if self.size <= self._keep:
            self._data += data
        if self._reducer is None or self.fault is not None:
            return
        if self._inflate is not None and (data := self._inflated(data)) == b"":
            return
        self._plain += len(data)
        if self._plain > MAX_REPLY_BYTES:
            self._lost(f"the answer is longer than {MAX_REPLY_BYTES} bytes")
        elif self.streams:
            self._split(data)
        else:
            self._rest += data

    @property
    def kept(self) -> bytes:
        """Return the bytes, if all of them are kept."""
        return bytes(self._data) if self.size <= self._keep else b""

    def reply(self) -> ModelReply:
        """Return what the whole answer is. Raise ModelFault if it is none, or not whole."""
        if self._reducer is None or self._row is None:
            return ModelReply(message=Message("assistant", ()), stop="answer", usage=self._usage)
        if self.fault is None and not self.streams:
            self._take(self._whole())
        if self.fault is not None:
            raise self.fault
        return self._reducer.reply()

    def _whole(self) -> list[bytes]:
        try:
            return whole_events(self._row, self._rest) if self._row is not None else []
        except (msgspec.DecodeError, RecursionError) as error:
            self._lost(f"the answer is not JSON: {error}")
            return []

    def _split(self, data: bytes) -> None:
        """Cut a stream into events: quickly where whole ones come, by the rules of the format otherwise."""
        if self._events is None and not self._rest and data.endswith(_BLOCK) and b"\r" not in data:
            blocks = data.split(_BLOCK)
            if data.count(b"\ndata:") + data.startswith(b"data:") <= len(blocks) - 1:
                self._take(_DATA.findall(data))
                return
        if self._events is None:
            self._events = EventReader(MAX_EVENT_BYTES)
        try:
            self._take([event.data for event in self._events.feed(data) if event.data])
        except LineTooLongError as error:
            self._lost(str(error))

    def _take(self, events: list[bytes]) -> None:
        """Read events; who watches is told once what all of them said."""
        if self._reducer is None:
            return
        pieces: list[Delta] = []
        try:
            for data in events:
                if data:
                    self._reducer.feed(data, pieces.append)
        except ModelFault as fault:
            self.fault = fault
        for kind, deltas in groupby(pieces, lambda delta: delta.kind):
            self._watch(Delta(kind, "".join(delta.text for delta in deltas)))

    def _inflated(self, data: bytes) -> bytes:
        try:
            return bytes(self._inflate.decompress(data, MAX_REPLY_BYTES))
        except zlib.error as error:
            self._lost(f"the answer cannot be inflated: {error}")
            return b""

    def _lost(self, reason: str) -> None:
        """Read no further; what comes is passed on all the same."""
        self.fault = self.fault or ServerFault(reason)


class PassedModel:
    """A model behind a request that a program wrote (`remit.models.port.Model`): sends it as it came, once."""

    def __init__(
        self,
        name: ModelName,
        request: Request,
        upstream: Upstream,
        client: Client,
        *,
        tools: OfferedTools,
        keeping: Keeping,
        clock: Clock,
    ) -> None:
        self.name = name
        self.answered = False
        """Whether the provider answered at all."""
        self._request = request
        self._upstream = upstream
        self._client = client
        self._tools = tools
        self._keeping = keeping
        self._clock = clock
        self._answer: ExchangeAnswer | None = None
        self._headers: dict[str, str] = {}
        self._end: End = "refused"
        self._wanted: dict[str, str] = {}

    def prepare(self, ask: Ask) -> Sending:
        route = self._request.route
        api = route.row.wire.api if route.row is not None else f"{route.family.provider}/other"
        tools = msgspec.structs.replace(ask, tools=self._tools)
        return Sending(ask=tools, api=api, path=route.path, body=self._request.body)

    async def send(self, sending: Sending, watch: Watch) -> ModelReply:
        began = self._clock.monotonic()
        first: list[float] = []

        def heard(delta: Delta) -> None:
            if not first:
                first.append(self._clock.monotonic())
            watch(delta)

        self._end = "failed"
        answer = self._answer = ExchangeAnswer(
            self._request.route, sending.ask.id, self.name.producer, self._keeping.bytes, heard
        )
        try:
            reply = await self._reply(answer)
        except CutAnswer:
            self._end = "cut"
            raise
        self._end = "complete"
        self._wanted = wanted_of(reply)
        return msgspec.structs.replace(
            reply,
            first_us=int((first[0] - began) * 1_000_000) if first else None,
            duration_us=int((self._clock.monotonic() - began) * 1_000_000),
            model=reply.model or self.name.model,
            request_id=self._headers.get("request-id", "") or self._headers.get("x-request-id", ""),
        )

    async def close(self) -> None:
        """Nothing is held."""

    def record(self, step: str, invocation: str) -> tuple[ModelGatewayAnswered, tuple[Blob, ...]]:
        """Return the event that says how it ended, with the bytes of the answer."""
        answer, client = self._answer, self._client
        data = answer.kept if answer is not None else b""
        blob = Blob(sha256(data), data) if data else None
        cut = self._end == "cut" and answer is not None and self._request.route.row is not None
        event = ModelGatewayAnswered(
            step=step,
            invocation_id=invocation,
            end=self._end,
            status=client.status,
            headers=self._headers,
            answer_blob=BlobRef(blob.digest, len(data), "") if blob is not None else msgspec.UNSET,
            size=answer.size if answer is not None else 0,
            pieces=client.pieces,
            client_gone_after=client.gone_after,
            wanted=self._wanted,
            handed_on_before_cut=tuple(closed_calls(self._request.route.row, data)) if cut else (),
        )
        return event, (blob,) if blob is not None else ()

    async def _reply(self, answer: ExchangeAnswer) -> ModelReply:
        """Pass the answer on, and return what it is: with its terminal event it is whole, however its connection ends.

        Raise ModelFault.
        """
        try:
            await self._exchange(answer)
        except (CutAnswer, Timeout):
            if not answer.streams:
                raise
            try:
                reply = answer.reply()
            except ModelFault:
                reply = None
            if reply is None:
                raise
            await self._client.end()
            return reply
        return answer.reply()

    async def _exchange(self, answer: ExchangeAnswer) -> None:
        """Send the request, and pass the answer on as it comes. Raise ModelFault."""
        request, upstream = self._request, self._upstream
        url = f"{upstream.url}{request.route.path.removeprefix(request.route.family.based)}"
        url = f"{url}?{request.query}" if request.query else url
        headers = forwarded(request.headers, request.route.family.key_header, upstream.key)
        self._client.watch()
        with connection_faults():
            async with upstream.client.request(
                request.method,
                URL(url, encoded=True),
                data=request.body,
                headers=headers,
                allow_redirects=False,
            ) as response:
                await self._pass(response, answer)

    async def _pass(self, response: aiohttp.ClientResponse, answer: ExchangeAnswer) -> None:
        self.answered = True
        names = {name.lower(): value for name, value in response.headers.items()}
        self._headers = {name: names[name] for name in _KEPT_HEADERS if name in names}
        status = response.status
        if _OK < status < _FAILS and "location" in names:
            raise redirected(status)
        answer.begin(response.content_type == "text/event-stream", names.get("content-encoding", ""))
        await self._client.start(status, passed(response.headers))
        failure = bytearray()
        async for piece in self._pieces(response):
            await self._client.piece(piece)
            answer.feed(piece)
            if status >= _FAILS and len(failure) < _MAX_ERROR_BYTES:
                failure += piece
        await self._client.end()
        if status >= _FAILS:
            raise self._fault(status, names, bytes(failure))

    async def _pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The pieces of an answer, until its end, or until no one wants them. Raise Cut."""
        async for piece in response.content.iter_any():
            yield piece
            if self._keeping.stop and self._client.gone.is_set():
                raise CutAnswer("the program that asked left, and the answer was stopped")

    def _fault(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelFault:
        row = self._request.route.row
        if row is None:
            return Rejected(f"HTTP {status}", status=status)
        return fault_of(row.wire, WireFailure(status, headers, body, self._clock.now()))


async def whole_body(receive: Receive, most: int, limit: str) -> bytes:
    """Read a request's body. Raise HttpProblem if it is larger than `limit` says, or did not come whole."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpProblem(Code.INVALID_INPUT, "the request did not come whole")
        body += message.get("body", b"")
        if len(body) > most:
            raise HttpProblem(Code.REQUEST_TOO_LARGE, f"the request is longer than {most} bytes ({limit})")
        if not message.get("more_body", False):
            return bytes(body)


def wanted_of(reply: ModelReply) -> dict[str, str]:
    """Return the calls that a model wants: their tools, by the provider's identifiers."""
    return {call.wire_id or call.name: call.name for call in reply.message.calls}


def forwarded(headers: Mapping[str, str], key_header: str, key: str) -> dict[str, str]:
    """Return the headers that go on: those of the program, without its token, and with the provider's key."""
    passed_headers = {name: value for name, value in headers.items() if name not in _HOPS | _KEYS}
    if "accept-encoding" in passed_headers:
        wanted = [each for each in _READABLE if each in passed_headers["accept-encoding"]]
        passed_headers["accept-encoding"] = ", ".join(wanted) or "identity"
    if key:
        passed_headers[key_header] = f"Bearer {key}" if key_header == "authorization" else key
    return passed_headers


def passed(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer as they go to the program."""
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in headers.items()
        if name.lower() not in _HOPS - {"content-length"}
    ]
