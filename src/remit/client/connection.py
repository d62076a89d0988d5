"""Requests to a server: each calls one route of the table by its name, and its answer is decoded into the route's type.

Reads, and commands that may be repeated, are sent again after the connection failed. Another command may have been
carried out although its answer was lost: its sender looks first.

Problems that a server answers with, as the errors that the same call raises on a journal here.

The person who asks a server: it knows people by their tokens, so that no request speaks for another person.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from remit import errors
from remit.api.route import BYTES, Route
from remit.api.table import ROUTES
from remit.clock import Clock, SystemClock
from remit.codes import Code
from remit.errors import (
    AppendConflictError,
    BusyError,
    ChainBrokenError,
    JournalError,
    NotFoundError,
    NotSentError,
    PlanError,
    RemitError,
    ServerError,
    SettingsError,
    StateError,
    UsageError,
    VersionError,
)
from remit.http.guard import LOOPBACK
from remit.redact import line
from remit.tools.catalog import ResolveError
from remit.version import __version__

_BY_DEFAULT: Final = {
    kind.default: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, RemitError) and kind is not errors.NondeterminismError
}
_BY_CODE: Final[dict[Code, type[RemitError]]] = {
    **_BY_DEFAULT,
    Code.APPEND_CONFLICT: AppendConflictError,
    Code.BLOB_MISSING: ChainBrokenError,
    Code.DECIDER_NOT_ALLOWED: UsageError,
    Code.DISK_FULL: StateError,
    Code.FOLDER_NOT_TRUSTED: SettingsError,
    Code.HEAD_FORGED: ChainBrokenError,
    Code.HEAD_MISSING: ChainBrokenError,
    Code.HEAD_UNSEALED: ChainBrokenError,
    Code.IDEMPOTENCY_MISMATCH: StateError,
    Code.INVALID_TOOL_STEP: ResolveError,
    Code.JOB_QUOTA_EXCEEDED: BusyError,
    Code.JOURNAL_MISSING: NotFoundError,
    Code.KEY_MISSING: JournalError,
    Code.MODEL_DRIFT: VersionError,
    Code.NO_WORKER: StateError,
    Code.PLAN_NEWER: VersionError,
    Code.PLAN_UNREADABLE: PlanError,
    Code.RECORD_INVALID: JournalError,
    Code.RECORD_CONTRADICTED: ChainBrokenError,
    Code.SANDBOX_UNAVAILABLE: StateError,
    Code.SCOPE_REQUIRED: UsageError,
    Code.SERVER_ANSWER_INVALID: ServerError,
    Code.TOOL_QUARANTINED: ResolveError,
    Code.TOOL_UNAVAILABLE: StateError,
    Code.UNKNOWN_TOOL: ResolveError,
    Code.direct_fill_missing_by: StateError,
    Code.env_unavailable: UsageError,
}
"""Codes whose error does not follow from their status."""
_BY_STATUS: Final[dict[int, type[RemitError]]] = {
    **dict.fromkeys((400, 401, 405, 406, 408, 413, 415, 421, 422), UsageError),
    **dict.fromkeys((403, 409, 410), StateError),
    404: NotFoundError,
}
_REMEDIES: Final = {
    Code.UNAUTHENTICATED: "Set REMIT_TOKEN to a token that is valid there, or log in: remit login URL.",
    Code.SCOPE_REQUIRED: "Use a token with the scope, or have it added in the server's [[clients]].",
    Code.HOST_REFUSED: "Use one of the server's names, or start the server with --known-as.",
}
_SHOWN: Final = 200
_TEXT: Final = 1_000
"""Characters of what a server says, on one line: it must not look like lines of ours."""


class _Problem(msgspec.Struct, frozen=True):
    """What is read of a problem (RFC 9457)."""

    error_code: str
    detail: str = ""
    remedy: str = ""


def error_of(status: int, body: bytes) -> RemitError:
    """The error behind an answer that is not a success."""
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _foreign(f"the server answered {status}: {line(body[:_SHOWN].decode(errors='replace'))}")
    code, detail = Code.__members__.get(problem.error_code), line(problem.detail, _TEXT)
    if code is None:
        return _foreign(f"the server answered {status} with the code {line(problem.error_code)}: {detail}")
    return class_of(code)(detail, code=code, remedy=line(problem.remedy, _TEXT) or _REMEDIES.get(code, ""))


def class_of(code: Code) -> type[RemitError]:
    """The error that a call on a journal here raises with this code."""
    error_type = _BY_CODE.get(code)
    if error_type is not None:
        return error_type
    if code.name.startswith("JOURNAL_"):
        return JournalError
    return _BY_STATUS.get(code.http, RemitError)


def _foreign(reason: str) -> ServerError:
    remedy = "Check that the URL is that of `remit serve`, and that both sides have the same version."
    return ServerError(reason, code=Code.SERVER_ANSWER_INVALID, remedy=remedy)


FAILURES: Final = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError, OSError)
"""Exceptions of a connection that fails."""
MAX_ANSWER: Final = 256 * 1024 * 1024
"""Bytes of an answer that are read."""
_PAUSES_S: Final = (0.1, 0.4, 1.6)
"""Pauses before a request is sent again."""
_CONNECT_S: Final = 10.0
_KEPT_S: Final = 10.0
"""Seconds that an idle connection is kept: less than the server keeps it."""
_WHOLE: Final = 10
"""An answer may take so many times as long to arrive as it may take to begin, with all repetitions."""
_BEAT_S: Final = 45.0
"""Seconds without a byte after which a stream is taken as broken; a server sends a beat every 15."""
_OK: Final = range(200, 300)
_BY_NAME: Final = {route.name: route for route in ROUTES}
_ordered: Final = msgspec.json.Encoder().encode


class ServerConnection:
    """A session with one server."""

    def __init__(self, url: str, token: str = "", *, timeout_s: float = 30.0, clock: Clock | None = None) -> None:
        self.url = base_url(url, token)
        self.clock = clock or SystemClock()
        self._headers = {"user-agent": f"remit/{__version__}"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Get ready to connect."""
        connector = aiohttp.TCPConnector(keepalive_timeout=_KEPT_S)
        # Not `trust_env`: it sends loopback's plain requests to a proxy, and passwords of ~/.netrc.
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers, proxy=proxy_for(self.url))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        session, self._session = self._open(), None
        await session.close()

    async def ask(
        self,
        name: str,
        *path: str,
        query: msgspec.Struct | None = None,
        body: Any = None,
        answer: Any = None,
        key: str = "",
        held_s: float = 0.0,
        repeatable: bool = False,
    ) -> Any:
        """Call a route; its answer as the route's type, or as `answer`.

        `path` fills the braces of the route's path, in their order. `key` is the Idempotency-Key. `held_s` are seconds
        that the server may hold the answer. `repeatable` says that sending the request again changes nothing. Raise
        the error that the problem stands for, or ServerError.
        """
        route = _BY_NAME[name]
        pauses = _PAUSES_S if route.method == "GET" or key or repeatable else ()
        try:
            async with asyncio.timeout(_WHOLE * self._timeout_s + held_s):
                data = await self._read(route, self._url(route, path, query), body, key, held_s, pauses)
        except TimeoutError:
            raise self._failed(route, TimeoutError("the answer did not arrive in time"), is_sent=True) from None
        kind = answer if answer is not None else route.answer
        if kind is None:
            return None
        if route.media == BYTES:
            return data
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = f"the answer of {self.url} to {name} cannot be read: {line(str(error))}"
            remedy = "Check that both sides have the same version of Remit."
            raise ServerError(reason, code=Code.SERVER_ANSWER_INVALID, remedy=remedy) from error

    @asynccontextmanager
    async def stream(self, name: str, *path: str, after: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream of server-sent events that goes on after an identifier. Raise RemitError or one of FAILURES."""
        route = _BY_NAME[name]
        headers = {"accept": "text/event-stream", "last-event-id": str(after)}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_BEAT_S)
        async with self._open().request(
            route.method, self._url(route, path, None), headers=headers, timeout=timeout, allow_redirects=False
        ) as response:
            if response.status not in _OK:
                raise error_of(response.status, await _whole(response))
            yield response.content.iter_any()

    async def _read(
        self, route: Route, url: URL, body: Any, key: str, held_s: float, pauses: tuple[float, ...]
    ) -> bytes:
        left, is_sent = iter(pauses), False
        while True:
            try:
                return await self._once(route, url, body, key, held_s)
            except FAILURES as error:
                pause, is_sent = next(left, None), is_sent or not isinstance(error, aiohttp.ClientConnectorError)
                if pause is None or isinstance(error, aiohttp.ClientSSLError):
                    raise self._failed(route, error, is_sent=is_sent) from error
            await self.clock.sleep(pause)

    async def _once(self, route: Route, url: URL, body: Any, key: str, held_s: float) -> bytes:
        headers = {"accept": "application/json"}
        if key:
            headers["idempotency-key"] = key
        if route.body is not None:
            headers["content-type"] = "application/json"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=self._timeout_s + held_s)
        data = _ordered(body) if route.body is not None else None
        async with self._open().request(
            route.method, url, data=data, headers=headers, timeout=timeout, allow_redirects=False
        ) as response:
            once = await _whole(response)
        if response.status not in _OK:
            raise error_of(response.status, once)
        return once

    def _failed(self, route: Route, error: BaseException, *, is_sent: bool) -> RemitError:
        """Return the error of a request, of which an attempt was sent or none was."""
        reason = line(str(error)) or type(error).__name__
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            detail = getattr(error.certificate_error, "verify_message", "") or reason
            remedy = "Check the URL's host; for your own certificate authority, set SSL_CERT_FILE."
            return NotSentError(f"{self.url}: its certificate is not accepted: {line(detail)}", remedy=remedy)
        if route.method == "GET" or not is_sent:
            kind = ServerError if is_sent else NotSentError
            return kind(f"{self.url}: {reason}", remedy="Check the URL, and that `remit serve` runs there.")
        lost = f"{self.url}: {reason}; {route.name} may have taken effect"
        return ServerError(lost, remedy="Check whether it did before you send it again.")

    def _url(self, route: Route, path: tuple[str, ...], query: msgspec.Struct | None) -> URL:
        values_by_place = {
            f"{{{name}}}": quote(value, safe="") for name, value in zip(route.parameters, path, strict=True)
        }
        filled = "/".join(values_by_place.get(part, part) for part in route.path.split("/"))
        pairs = _pairs(query) if query is not None else []
        return URL(f"{self.url}{filled}" + (f"?{urlencode(pairs)}" if pairs else ""), encoded=True)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise ServerError("the connection is not open", remedy="Use it within `async with`.")
        return self._session


def _pairs(query: msgspec.Struct) -> list[tuple[str, str]]:
    """A query's fields; those with their default are left out, and a list gives one pair for each item."""
    pairs = [(field, getattr(query, field.name)) for field in msgspec.structs.fields(query)]
    return [
        (field.encode_name, str(item))
        for field, value in pairs
        if value != field.default
        for item in (value if isinstance(value, tuple) else (value,))
    ]


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body of an answer. Raise ServerError if it is larger than any that is meant."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MAX_ANSWER:
            reason = f"the server's answer is larger than {MAX_ANSWER} bytes"
            raise ServerError(reason, code=Code.SERVER_ANSWER_INVALID, remedy="Request less at a time.")
        parts.append(part)
    return b"".join(parts)


_EXAMPLE: Final = "Give a URL such as https://remit.example or http://127.0.0.1:8320."


def base_url(text: str, token: str) -> str:
    """The URL without a slash at its end.

    Raise UsageError if it is not one of HTTP, or if the token would cross a network as plain text.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"{text!r:.200} is not a URL: {error}", remedy=_EXAMPLE) from error
    if parts.scheme not in {"http", "https"} or not host or port == 0:
        raise UsageError(f"{text!r:.200} is not the URL of a server", remedy=_EXAMPLE)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError("the URL of a server has only a host and a path", remedy="Pass the token as REMIT_TOKEN.")
    if token and parts.scheme == "http" and host not in LOOPBACK:
        remedy = "Use https, or a tunnel to an address of this machine."
        raise UsageError(f"the token would be sent to {host} unencrypted", remedy=remedy)
    if not (token.isascii() and token.isprintable()):
        raise UsageError("the token has characters that cannot be sent", remedy="Correct REMIT_TOKEN.")
    return text.rstrip("/")


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL of `base_url`; None for this machine, and where it names none."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return None if host in LOOPBACK or proxy_bypass(host) else getproxies().get(parts.scheme)


def only_oneself(by: str) -> None:
    """Raise UsageError (LOCAL_ONLY) if a request is to be made in another person's name."""
    if by:
        reason = f"a server identifies you by your token; you cannot answer for {by!r:.80}"
        raise UsageError(reason, code=Code.LOCAL_ONLY, remedy="Omit the name, or use that person's token.")
