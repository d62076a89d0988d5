"""Closes connections that hold others up: a client that dribbles bytes, or opens many, holds nothing for long.

A connection whose request does not get past its headers is closed in time: uvicorn times out idle connections, but only
between requests, and one of its parsers takes headers of any length. If there are too many connections, a new one takes
the place of the oldest without a request under way, so that no client takes every descriptor of the process.
"""

from __future__ import annotations

import asyncio
import resource
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from remit.codes import Code
from remit.http.problem import KIND, Problem

HEAD_S: Final = 20.0
"""Seconds that the headers of a request may take to arrive."""
HEAD_BYTES: Final = 64 * 1024
"""How much of a request is taken before its headers end; a little more if it comes at once."""


_MOST: Final = 4_096
_KEPT_BACK: Final = 256
"""Descriptors of the process that are not for clients: the journal, servers, programs."""


class _Patient(asyncio.Protocol):
    """Passes on what a connection brings."""

    def __init__(self, head_s: float, most: int, others: dict[_Patient, None], *args: Any, **given: Any) -> None:
        self._head_s = head_s
        self._most = most
        self._others = others
        self._inner: Any = AutoHTTPProtocol(*args, **given)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._began = False
        self._head = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._inner.connection_made(transport)
        self._timer = self._loop.call_later(self._head_s, self._late)
        self._others[self] = None
        if len(self._others) > self._most:
            next((one for one in self._others if one.idle), self).close()

    @property
    def idle(self) -> bool:
        """Whether no request is under way."""
        cycle = self._inner.cycle
        return cycle is None or bool(cycle.response_complete)

    def close(self) -> None:
        """End the connection at once."""
        self._others.pop(self, None)
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._began = True
        self._inner.data_received(data)
        self._head = self._head + len(data) if self._in_head() else 0
        if self._head > HEAD_BYTES:
            self._refuse(Problem(Code.REQUEST_TOO_LARGE, f"The headers are larger than {HEAD_BYTES} bytes."))
            return
        if not self.idle:
            self._rest()
        elif self._timer is None:
            self._timer = self._loop.call_later(self._head_s, self._late)

    def eof_received(self) -> None:
        self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest()
        self._others.pop(self, None)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _in_head(self) -> bool:
        """Whether a request has begun of which not all headers are there."""
        cycle, scope = self._inner.cycle, self._inner.scope
        return scope is not None and (cycle is None or cycle.scope is not scope)

    def _late(self) -> None:
        self._timer = None
        self._refuse(Problem(Code.HEAD_TIMEOUT, f"The headers did not arrive within {self._head_s:g} s."))

    def _refuse(self, problem: Problem) -> None:
        self._rest()
        if self._transport is not None and not self._transport.is_closing():
            if self._began:
                self._transport.write(_answer(problem))
            self._transport.close()


def patient(head_s: float, most: int = 0) -> type[asyncio.Protocol]:
    """Uvicorn's protocol, with so many seconds for the headers of each request, and `most` connections at once.

    0 stands for as many as the descriptors of this process allow.
    """
    return cast("type[asyncio.Protocol]", partial(_Patient, head_s, most or _allowed(), {}))


def _allowed() -> int:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if descriptors == resource.RLIM_INFINITY else max(64, min(_MOST, descriptors - _KEPT_BACK))


def _answer(problem: Problem) -> bytes:
    head = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\ncontent-type: {KIND}\r\n"
    return f"{head}content-length: {len(problem.body)}\r\nconnection: close\r\n\r\n".encode() + problem.body
