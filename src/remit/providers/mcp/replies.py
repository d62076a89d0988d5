"""The meaning of a reply over HTTP to who asked, where it brings no answer."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import aiohttp
import msgspec
from yarl import URL

from remit.codes import Code
from remit.jsonrpc.message import error_of
from remit.jsonrpc.protocol import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MCPError,
    SessionGoneError,
    UnansweredError,
)
from remit.jsonrpc.stream import LineTooLongError

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
_MAX_REFUSAL: Final = 64 * 1024
"""Bytes of a refusal that are read."""
_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_MOVED: Final = frozenset({HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT})
_FOUND: Final = frozenset({HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND, HTTPStatus.SEE_OTHER})
_EMPTY: Final = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT, HTTPStatus.RESET_CONTENT})
_GIVEN_UP: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, 499})
"""With these a gateway tells that it waits no longer for a server to which it has passed the request on."""


class LoginError(Exception):
    """No one is logged in, or a login failed."""


async def refusal(response: aiohttp.ClientResponse, *, in_session: bool) -> MCPError | None:
    """Return why there will be no answer; None: there may be one.

    Whether the server took the request is left open, by the cause, wherever the reply does not rule it out.
    """
    if response.status < HTTPStatus.MULTIPLE_CHOICES:
        return _unanswered(response)
    if response.status < HTTPStatus.BAD_REQUEST:
        reason = f"{_line(response)}: it points to {_where(response)}"
        return MCPError(code=INVALID_REQUEST, message=reason) if _certain(response.status) else _open(reason)
    if response.status in _REFUSED:
        return UnansweredError(Code.AuthError, _line(response))
    error = await _told_in(response)
    if not _certain(response.status):
        return _open(error.message if error is not None else _line(response))
    if response.status == HTTPStatus.NOT_FOUND and in_session and (error is None or error.code != METHOD_NOT_FOUND):
        # Whatever words the server has for it.
        return SessionGoneError()
    return error or _untold(response)


def moved(response: aiohttp.ClientResponse, method: str) -> URL | None:
    """Return where to ask instead: at the same origin, or the same host by TLS, and with the same method."""
    location = response.headers.get("location")
    if location is None or response.status not in (_MOVED if method != "GET" else _MOVED | _FOUND):
        return None
    try:
        here, there = response.url, response.url.join(URL(location))
    except ValueError:
        return None
    if there.user or there.password:
        return None
    secured = (here.scheme, there.scheme) == ("http", "https") and here.is_default_port() and there.is_default_port()
    return there if here.origin() == there.origin() or (secured and here.host == there.host) else None


async def whole(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """A body. Raises LineTooLongError."""
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise LineTooLongError(f"an answer is longer than {limit} bytes")
    return b"".join(pieces)


def failure(error: Exception) -> UnansweredError:
    """Return what failed below HTTP, or before it."""
    if isinstance(error, LoginError):
        return UnansweredError(Code.AuthError, str(error))
    if isinstance(error, LineTooLongError):
        return _open(str(error))
    if isinstance(error, aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL):
        reason = f"{type(error).__name__}: no connection"  # its own words hold all of the URL
        return UnansweredError(Code.SpawnFailed, reason)
    cause = Code.SpawnFailed if isinstance(error, aiohttp.ClientConnectorError) else Code.NetworkError
    return UnansweredError(cause, f"{type(error).__name__}: {error}".removesuffix(": "))


def _certain(status: int) -> bool:
    """Return whether a server that answers this has certainly not made the call.

    It refuses the request, or sends it elsewhere as it is. Of the other redirections, some are how a form answers that
    was taken. What begins with 5 may come from a gateway whose server took the request and then broke off or was too
    slow, 503 among them ("reset before headers"), or from a server that failed half-way; not so 501.
    """
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return status in _MOVED or (status >= HTTPStatus.BAD_REQUEST and status not in _GIVEN_UP)
    return status == HTTPStatus.NOT_IMPLEMENTED


def _unanswered(response: aiohttp.ClientResponse) -> MCPError | None:
    if response.status in _EMPTY:
        return _open(f"it answered a request with {_line(response).removeprefix('HTTP ')}")
    if response.content_type not in {JSON, EVENTS}:
        return _open(f"it answered with {response.content_type[:100]}")
    return None


def _untold(response: aiohttp.ClientResponse) -> MCPError:
    """Return what a status alone says."""
    unknown = response.status == HTTPStatus.NOT_FOUND
    return MCPError(code=METHOD_NOT_FOUND if unknown else INTERNAL_ERROR, message=_line(response))


async def _told_in(response: aiohttp.ClientResponse) -> MCPError | None:
    """The error of JSON-RPC that a refusal brings, whatever its id: a server may refuse before it reads that."""
    if response.content_type != JSON:
        return None
    try:
        body = msgspec.json.decode(await whole(response, _MAX_REFUSAL))
    except (LineTooLongError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    error = body.get("error") if isinstance(body, dict) and body.get("jsonrpc") == "2.0" else None
    return error_of(error) if isinstance(error, dict) else None


def _line(response: aiohttp.ClientResponse) -> str:
    return f"HTTP {response.status} {response.reason or ''}".strip()[:200]


def _where(response: aiohttp.ClientResponse) -> str:
    """Return where it points, without what may carry secrets."""
    try:
        there = response.url.join(URL(response.headers.get("location", "")))
    except ValueError:
        return "nowhere"
    return str(there.with_user(None).with_query(None).with_fragment(None))[:200]


def _open(reason: str) -> UnansweredError:
    """No answer from who may have acted all the same; the connection is as good as before."""
    return UnansweredError(Code.BadGateway, reason)
