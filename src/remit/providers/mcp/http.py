"""A conversation with a server on streamable HTTP: each message of ours is a request, whose reply brings what is said.

Fills the place of the SDK's own transport and of its HTTP client, which take five times the processor for a call and
end the whole connection, and with it everyone's calls, when one request fails below HTTP. Here such a failure is the
answer to that request: an error of JSON-RPC whose data names the cause it has for us.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Self
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from remit.codes import Code
from remit.errors import UsageError
from remit.jsonrpc.dispatcher import Dispatcher
from remit.jsonrpc.message import CANCELLED, RpcMessage
from remit.jsonrpc.protocol import MCP_PROTOCOL_VERSION_HEADER, UnansweredError, is_modern
from remit.jsonrpc.stream import EventReader, LineTooLongError
from remit.providers.mcp.replies import EVENTS, JSON, LoginError, failure, moved, refusal, whole
from remit.tasks import Tasks
from remit.version import __version__

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.jsonrpc.protocol import RequestId
    from remit.providers.mcp.oauth import Authorization

CONNECT_S: Final = 10.0
"""Seconds to connect, to wait for a free connection, and for a server to take note of a notification."""
GOODBYE_S: Final = 0.5
"""Seconds that the end of a session waits for the server to take note of it."""
READ_S: Final = 3_600.0
"""Seconds without a byte on an open answer; calls have deadlines of their own."""
IDLE_S: Final = 3.0
"""Seconds that a connection is kept for the next request: servers close theirs after 5, and one that is being closed
leaves it in doubt whether a request arrived."""
RELISTEN_S: Final = 1.0
"""Seconds before a stream that broke off is taken up again, where the server does not say."""
SESSION: Final = "mcp-session-id"

_MAX_FAILURES: Final = 2
"""Times in a row that a stream cannot be taken up again before it is left alone."""
_END_S: Final = 0.5
"""Seconds that a stream may take to end after it brought the answer."""
_LEAST_S: Final = 0.02
"""Seconds before a stream is taken up again, however soon the server wants it."""
_MAX_HEADER: Final = 64 * 1024
"""Bytes of a line of a reply's head."""
_MAX_HOPS: Final = 5
"""Redirections that are followed, and authorizations that are tried, for one request."""
_FAILURES: Final = (aiohttp.ClientError, OSError, LoginError, LineTooLongError)
_PROXIES: Final = frozenset({"http", "https"})
_INITIALIZED: Final = "notifications/initialized"
_log: Final = logging.getLogger("remit.mcp")


class Http:
    """One server (`remit.jsonrpc.message.Transport`)."""

    def __init__(
        self,
        url: str,
        client: aiohttp.ClientSession,
        *,
        max_message_bytes: int,
        clock: Clock,
        authorization: Authorization | None,
    ) -> None:
        parsed = URL(url)
        self._url = parsed.with_user(None)
        self._who = aiohttp.encode_basic_auth(parsed.user or "", parsed.password or "") if parsed.user else ""
        self._client = client
        self._max_bytes = max_message_bytes
        self._clock = clock
        self._authorization = authorization
        self._proxy = _proxy_for(self._url)
        self._session = self._version = ""
        self._posts: dict[RequestId, asyncio.Task[None]] = {}
        self._telling: asyncio.Task[None] | None = None
        self._tasks = Tasks()
        self.dispatcher = Dispatcher(self)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str,
        headers: Mapping[str, str],
        *,
        max_message_bytes: int,
        clock: Clock,
        authorization: Authorization | None,
    ) -> AsyncIterator[Self]:
        """Talk to a server within the block; nothing is sent before someone asks something."""
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=READ_S)
        ours = {"user-agent": f"remit/{__version__}", **headers}
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(keepalive_timeout=IDLE_S, limit=0),
            headers=ours,
            timeout=timeout,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        ) as client:
            http = cls(url, client, max_message_bytes=max_message_bytes, clock=clock, authorization=authorization)
            try:
                yield http
            finally:
                await http._close()

    # --- the dispatcher's wire

    def send(self, message: RpcMessage) -> None:
        request_id = message.request_id
        self._version = message.headers.get(MCP_PROTOCOL_VERSION_HEADER, self._version)
        if message.method == CANCELLED and request_id is not None:
            self._cancel(message, request_id)
        elif message.method and request_id is not None:
            if message.method == "initialize":
                self._version = ""  # it is what is being agreed on
            post = self._posts[request_id] = self._tasks.task(self._ask(message, request_id))
            post.add_done_callback(lambda _: self._posts.pop(request_id, None))
        elif message.method:
            self._telling = self._tasks.task(self._tell(message, self._telling))
        else:
            self._tasks.begin(self._tell(message, None))

    async def drained(self) -> None:
        if self._telling is not None:
            await asyncio.wait([self._telling])

    def _cancel(self, message: RpcMessage, request_id: RequestId) -> None:
        """Since 2026-07-28 leaving is what cancels a request; before, only saying so does."""
        post = self._posts.get(request_id)
        if is_modern(self._version):
            if post is not None:
                post.cancel()
            return
        self._telling = self._tasks.task(self._tell(message, self._telling))
        if post is not None:
            self._telling.add_done_callback(lambda _: post.cancel())

    # --- messages of ours

    async def _ask(self, message: RpcMessage, request_id: RequestId) -> None:
        """Send a request and hand on what comes for it; a waiter hears how it ends in any case."""
        events = EventReader(self._max_bytes)
        try:
            async with self._requested("POST", message) as response:
                if message.method == "initialize":
                    self._session = response.headers.get(SESSION, "")
                if (refused := await refusal(response, in_session=bool(self._session))) is not None:
                    self.dispatcher.fail(request_id, refused)
                elif response.content_type == EVENTS:
                    with suppress(aiohttp.ClientError):  # it may go on elsewhere
                        await self._feed(response, events, lambda: self.dispatcher.awaits(request_id))
                else:
                    self.dispatcher.received(await whole(response, self._max_bytes))
                    error = UnansweredError(Code.BadGateway, "the response is not an answer to the request")
                    self.dispatcher.fail(request_id, error)
            if events.last_id and self.dispatcher.awaits(request_id):
                await self._follow(events, lambda: self.dispatcher.awaits(request_id))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is this request's, and its waiter is told
            self.dispatcher.fail(request_id, failure(error))
        broken = UnansweredError(Code.ConnectionError, "the stream ended without an answer")
        self.dispatcher.fail(request_id, broken)

    async def _tell(self, message: RpcMessage, after: asyncio.Task[None] | None) -> None:
        """Send what gets no answer, in its turn."""
        if after is not None:
            await asyncio.wait([after])
        try:
            # A server may think about an answer before it takes note of it.
            patience = CONNECT_S if message.method else None
            async with asyncio.timeout(patience), self._requested("POST", message) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    _log.debug("%s was refused: HTTP %d", message.method or "an answer", response.status)
        except Exception as error:  # noqa: BLE001 - not awaited; what depends on it says so itself
            _log.warning("%s was not sent to %s: %r", message.method or "an answer", self._url.host, error)
        if message.method == _INITIALIZED and self._session:
            self._tasks.begin(self._listen())

    # --- streams

    async def _listen(self) -> None:
        """Hear what belongs to no request, for as long as the server tells."""
        events = EventReader(self._max_bytes)
        with suppress(*_FAILURES):
            if not await self._stream(events, lambda: True):
                return
        await self._follow(events, lambda: True)

    async def _follow(self, events: EventReader, wanted: Callable[[], bool]) -> None:
        """Take a stream up again where it broke off, while it is wanted."""
        failures = 0
        while wanted() and failures < _MAX_FAILURES:
            pause_s = RELISTEN_S if events.retry_ms is None else max(events.retry_ms / 1_000, _LEAST_S)
            await self._clock.sleep(pause_s)
            try:
                if not await self._stream(events, wanted):
                    return
                failures = 0
            except _FAILURES as error:
                _log.debug("a stream cannot be resumed: %r", error)
                failures += 1

    async def _stream(self, events: EventReader, wanted: Callable[[], bool]) -> bool:
        """Hear a stream to its end; False where the server has none."""
        events.restart()
        async with self._requested("GET", last_id=events.last_id) as response:
            if response.status != HTTPStatus.OK or response.content_type != EVENTS:
                return False
            await self._feed(response, events, wanted)
        return True

    async def _feed(self, response: aiohttp.ClientResponse, events: EventReader, wanted: Callable[[], bool]) -> None:
        async for chunk in response.content.iter_any():
            for event in events.feed(chunk):
                if event.kind == "message" and event.data:
                    self.dispatcher.received(event.data)
            if not wanted():
                break
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_S):  # a stream that is read to its end leaves its connection to others
                async for _ in response.content.iter_any():
                    pass

    # --- HTTP

    @asynccontextmanager
    async def _requested(
        self, method: str, message: RpcMessage | None = None, last_id: str = ""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The reply to a request; redirections within the origin are followed, and a refusal asks for authorization."""
        headers = {"accept": EVENTS} if method == "GET" else {"accept": f"{JSON}, {EVENTS}", "content-type": JSON}
        headers |= {"authorization": self._who} if self._who else {}
        headers |= {SESSION: self._session} if self._session else {}
        headers |= {MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version else {}
        headers |= {"last-event-id": last_id} if last_id else {}
        headers.update(message.headers if message is not None else {})
        if self._authorization is not None:
            headers |= await self._authorization.headers(self._version)
        url, tries = self._url, {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
        for hop in range(_MAX_HOPS + 1):
            async with self._client.request(
                method,
                url,
                data=message.body if message is not None else None,
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                elsewhere, renewed = moved(response, method), None
                if response.status in tries and self._authorization is not None:
                    tries.remove(HTTPStatus(response.status))
                    renewed = await self._authorization.renewed(
                        self._version, headers.get("authorization", ""), response
                    )
                if hop == _MAX_HOPS or (elsewhere is None and renewed is None):
                    yield response
                    return
                url, headers = elsewhere or url, headers | (renewed or {})

    # --- common

    async def _close(self) -> None:
        """Say goodbye, if there is a session; nothing is under way after it."""
        try:
            if self._session:
                with suppress(*_FAILURES):
                    async with asyncio.timeout(GOODBYE_S), self._requested("DELETE"):
                        pass
        finally:
            self._tasks.cancel()
            await self._tasks.ended()
            if self._authorization is not None:
                await self._authorization.close()


def _proxy_for(url: URL) -> str | None:
    """Return what the environment says about reaching a host; netrc files are not looked at. Raises UsageError."""
    known = getproxies()
    proxy = known.get(url.scheme) or known.get("all")
    if proxy is None or proxy_bypass(f"{url.host}:{url.port}"):
        return None
    scheme, between, _ = proxy.partition("://")
    if between and scheme not in _PROXIES:
        reason = f"a proxy of the kind {scheme} is set in the environment"
        raise UsageError(reason, remedy="Set an http proxy, or name the server's host in no_proxy.")
    return proxy if between else f"http://{proxy}"
