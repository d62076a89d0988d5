"""A model behind a wire: one request, one stream of events, one reply or one fault."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import aiohttp
import msgspec

from remit.jsonrpc.stream import EventReader, LineTooLongError
from remit.models.faults import CutAnswer, ModelFault, Rejected, ServerFault, Timeout
from remit.models.offers import offers_of
from remit.models.port import Limiter, Sending
from remit.models.reply import Delta, ModelReply, Watch
from remit.models.wires.wire import Reducer, Wire, WireFailure
from remit.models.wires.wire import body as json_body
from remit.version import __version__

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.models.names import ModelName
    from remit.models.prompt import Ask


CONNECT_S: Final = 15.0
"""Seconds to connect."""
MAX_EVENT_BYTES: Final = 32 * 1024 * 1024
"""The largest event; the last one of a response repeats all of it."""
MAX_REPLY_BYTES: Final = 128 * 1024 * 1024
_MAX_ERROR_BYTES: Final = 64 * 1024
_EVENTS: Final = "text/event-stream"
_HEADER: Final = 64 * 1024
_REQUEST_IDS: Final = ("x-request-id", "request-id")
_log: Final = logging.getLogger("remit.models")
_encode: Final = msgspec.json.Encoder().encode


def http_client(patience_s: float) -> aiohttp.ClientSession:
    """A client for any number of models; a stream may be silent for `patience_s` seconds."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        headers={"user-agent": f"remit/{__version__}", "accept": _EVENTS, "content-type": "application/json"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=patience_s),
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=_HEADER,
        max_field_size=_HEADER,
    )


@contextmanager
def connection_faults() -> Iterator[None]:
    """Raise what ends a connection to a provider as the ModelFault that it is."""
    try:
        yield
    except aiohttp.ClientConnectorError as error:
        raise ServerFault(f"the provider cannot be reached: {error}", unsent=True) from error
    except aiohttp.ConnectionTimeoutError as error:
        raise Timeout("the provider could not be reached in time", unsent=True) from error
    except TimeoutError as error:
        raise Timeout("the provider fell silent") from error
    except (aiohttp.ClientError, OSError) as error:
        raise CutAnswer(f"the connection broke: {type(error).__name__} {error}") from error


def redirected(status: int) -> Rejected:
    """Return the fault of a provider that sends a request, and the key in it, to another place."""
    return Rejected(f"the provider redirects (HTTP {status}), which is not followed")


def fault_of(wire: Wire, failure: WireFailure) -> ModelFault:
    """Return the fault that a failure is on a wire; an error in the place of an answer was not billed."""
    fault = wire.fault(failure)
    if failure.status >= HTTPStatus.BAD_REQUEST and not isinstance(fault, Timeout):
        fault.billed = "no"
    return fault


class RemoteModel:
    """One model at one provider (`remit.models.port.Model`)."""

    def __init__(
        self,
        name: ModelName,
        wire: Wire,
        *,
        url: str,
        key: str,
        client: aiohttp.ClientSession,
        limiter: Limiter,
        clock: Clock,
    ) -> None:
        self._name = name
        self._wire = wire
        self._url = url
        self._key = key
        self._client = client
        self._limiter = limiter
        self._clock = clock

    @property
    def name(self) -> ModelName:
        return self._name

    def prepare(self, ask: Ask) -> Sending:
        try:
            body = _encode(self._wire.body(self._name.model, ask, self._name.producer))
        except (TypeError, ValueError, RecursionError) as error:
            raise Rejected(f"the request cannot be written: {error}") from error
        left_out = offers_of(ask, self._wire.dialect).left_out
        if ask.choice in left_out:
            raise Rejected(f"{ask.choice} cannot be offered: {left_out[ask.choice]}")
        path = self._wire.path(self._name.model)
        return Sending(ask=ask, api=self._wire.api, path=path, body=body, left_out=left_out)

    async def send(self, sending: Sending, watch: Watch) -> ModelReply:
        async with self._limiter.turn():
            try:
                return await self._asked(sending, _Watcher(watch, self._clock))
            except ModelFault as fault:
                if fault.retry == "at" and fault.after_s:
                    self._limiter.pause(fault.after_s)
                raise

    async def close(self) -> None:
        """The client belongs to the code that made the model."""

    async def _asked(self, sending: Sending, watcher: _Watcher) -> ModelReply:
        reducer = self._wire.reducer(sending.ask, self._name.producer)
        with connection_faults():
            async with self._client.post(
                self._url + sending.path,
                data=sending.body,
                headers=self._wire.headers(self._key),
                allow_redirects=False,  # a key goes to no other server
            ) as response:
                await self._check(response)
                request_id = next((response.headers[name] for name in _REQUEST_IDS if name in response.headers), "")
                await self._reduce(response, reducer, watcher)
        first_us, duration_us = watcher.times()
        reply = reducer.reply()
        answer = msgspec.structs.replace(
            reply,
            message=offers_of(sending.ask, self._wire.dialect).decoded(reply.message),
            request_id=request_id,
            first_us=first_us,
            duration_us=duration_us,
            model=reply.model or self._name.model,
        )
        return answer.checked()

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        """Raise the fault of a response that is not a stream."""
        if response.status == HTTPStatus.OK and response.content_type == _EVENTS:
            return
        body = await response.content.read(_MAX_ERROR_BYTES)
        headers = {name.lower(): value for name, value in response.headers.items()}
        if HTTPStatus.MULTIPLE_CHOICES <= response.status < HTTPStatus.BAD_REQUEST:
            raise redirected(response.status)
        if response.status == HTTPStatus.OK and not json_body(body).get("error"):
            raise ServerFault(f"the provider answered with {response.content_type}, not with a stream of events")
        raise fault_of(self._wire, WireFailure(response.status, headers, body, self._clock.now()))

    async def _reduce(self, response: aiohttp.ClientResponse, reducer: Reducer, watcher: _Watcher) -> None:
        """Feed the stream to the reducer; how the connection ends is the reducer's to judge."""
        try:
            async for data in _events(response):
                reducer.feed(data, watcher)
                if reducer.done:
                    return
        except (aiohttp.ClientPayloadError, ConnectionError) as error:
            _log.debug("a stream broke off: %r", error)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The data of each event. Raises Server for a stream beyond the limits."""
    events, size = EventReader(MAX_EVENT_BYTES), 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > MAX_REPLY_BYTES:
            raise ServerFault(f"the answer is longer than {MAX_REPLY_BYTES} bytes")
        try:
            decoded = events.feed(chunk)
        except LineTooLongError as error:
            raise ServerFault(str(error)) from error
        for event in decoded:
            if event.data:
                yield event.data


class _Watcher:
    """Passes pieces on and takes the time; what a watcher raises is not the model's."""

    def __init__(self, watch: Watch, clock: Clock) -> None:
        self._watch = watch
        self._clock = clock
        self._began = clock.monotonic()
        self._first: float | None = None

    def __call__(self, delta: Delta) -> None:
        if not delta.text:
            return
        if self._first is None:
            self._first = self._clock.monotonic()
        try:
            self._watch(delta)
        except asyncio.CancelledError:
            raise
        except Exception:  # noqa: BLE001 - it belongs to anyone who watches
            _log.debug("a piece of an answer was not shown", exc_info=True)

    def times(self) -> tuple[int | None, int]:
        """Microseconds to the first piece, and until now."""
        first = None if self._first is None else int((self._first - self._began) * 1_000_000)
        return first, int((self._clock.monotonic() - self._began) * 1_000_000)
