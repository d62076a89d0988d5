"""A server on streamable HTTP: one client per server, one TLS context for all of them, and failures that stay alone.

The SDK's transport ends the whole connection, and with it everybody's calls, when one request fails below HTTP. Here
such a failure becomes the answer to that request: a JSON-RPC error whose data names the cause it has for us.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import httpx2
import msgspec
from mcp.client.auth import OAuthFlowError
from mcp_types import CONNECTION_CLOSED

from remit.codes import Code

CONNECT_S: Final = 10.0
"""Seconds to connect, to write, and to wait for a free connection."""
GOODBYE_S: Final = 0.5
"""Seconds that the end of a session waits for the server to take note of it."""
READ_S: Final = 3_600.0
"""Seconds without a byte on an open answer; calls have deadlines of their own."""
CAUSE: Final = "remit_cause"
"""Where the data of such an error names its cause."""

_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


@cache
def trust() -> ssl.SSLContext:
    """The system's certificates, read once: a context of its own costs each client 28 ms."""
    return ssl.create_default_context()


def client(headers: Mapping[str, str], auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
    """The HTTP client of one server; `auth` authorizes its requests."""
    timeout = httpx2.Timeout(CONNECT_S, read=READ_S)
    return _Client(headers=dict(headers), auth=auth, timeout=timeout, verify=trust())


class _Client(httpx2.AsyncClient):
    """Answers where a network, or what stands between us and the server, does not."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            async with asyncio.timeout(GOODBYE_S if request.method == "DELETE" else None):
                response = await super().send(request, **options)
        except TimeoutError:
            return _answer(request, HTTPStatus.REQUEST_TIMEOUT, Code.Timeout, "no answer to our goodbye")
        except OAuthFlowError as error:
            return _answer(request, HTTPStatus.UNAUTHORIZED, Code.AuthError, str(error))
        except httpx2.TransportError as error:
            cause = Code.SpawnFailed if isinstance(error, _NEVER_SENT) else Code.NetworkError
            return _answer(
                request, HTTPStatus.BAD_GATEWAY, cause, f"{type(error).__name__}: {error}".removesuffix(": ")
            )
        if response.status_code in _REFUSED or response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            json = response.headers.get("content-type", "").lower().startswith("application/json")
            if response.status_code in _REFUSED or not json:
                await response.aclose()
                cause = Code.AuthError if response.status_code in _REFUSED else Code.BadGateway
                status = f"HTTP {response.status_code} {response.reason_phrase}".strip()
                return _answer(request, response.status_code, cause, status)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Stream(response.stream)
        return response


class _Stream(httpx2.AsyncByteStream):
    """An answer that breaks off ends there: whoever reads it finds it incomplete."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except httpx2.TransportError:
            return

    async def aclose(self) -> None:
        await self._stream.aclose()


def _answer(request: httpx2.Request, status: int, cause: Code, why: str) -> httpx2.Response:
    error = {"code": CONNECTION_CLOSED, "message": why, "data": {CAUSE: cause.name}}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
    return httpx2.Response(status, headers={"content-type": "application/json"}, content=body, request=request)
