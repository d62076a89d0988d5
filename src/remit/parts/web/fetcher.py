"""The one way of this provider to the web: each connection goes to an address that was judged, each body is bounded.

Names are resolved once and every address of theirs is judged (http/addresses.py); an address that stands in the URL
itself never comes by a resolver, so the socket of each connection is judged too. Redirects are followed by hand, each
judged like the first URL. A body is inflated here, in bounded pieces: what counts is its decoded size. One deadline
holds for all of it. Proxies that the environment names are not used, since they would connect to what they like.

URLs as this provider takes, compares and keeps them.

Failures on the web, as the causes of the tools contract: one table of aiohttp's exceptions.

WebError (a ProviderError)
├── a page        dns_failed, connect_failed, tls_failed, timeout_connect, timeout_read, ssrf_blocked, http_403,
│                 http_429, content_too_large, unsupported_content_type, parse_failed, InvalidInput, NetworkError
└── a backend     WebBlocked (captcha_required, captcha_cooldown, http_403, http_429), WebProviderError, WebParseError
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

import aiohttp
import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.http import urls
from remit.http.addresses import BlockedAddressError, Resolver, resolved
from remit.http.connector import BlockedSocketError, judging_connector, private_if
from remit.http.urls import place_of
from remit.version import __version__


class WebError(ProviderError):
    """A page or a search backend that gave no answer; `cause` says why, `blocked_by` what a site blocked it with.

    `headers` are those of a service that may say in them when it wants to be asked again.
    """

    def __init__(
        self, message: str, cause: Code, *, blocked_by: Code | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.blocked_by = blocked_by
        self.headers = headers or {}
        super().__init__(message, cause=cause, detail={"blocked_by": blocked_by.name} if blocked_by else None)


_TABLE: Final[tuple[tuple[type[BaseException], Code, str], ...]] = (
    (aiohttp.ClientConnectorDNSError, Code.dns_failed, "the name has no address"),
    (aiohttp.ClientConnectorCertificateError, Code.tls_failed, "the certificate is not trusted"),
    (aiohttp.ClientSSLError, Code.tls_failed, "TLS failed"),
    (aiohttp.ConnectionTimeoutError, Code.timeout_connect, "it did not accept the connection in time"),
    (aiohttp.SocketTimeoutError, Code.timeout_read, "it did not send its answer in time"),
    (TimeoutError, Code.timeout_read, "it did not send its answer in time"),
    (aiohttp.ClientConnectorError, Code.connect_failed, "it cannot be reached"),
    (aiohttp.ServerDisconnectedError, Code.connect_failed, "it closed the connection without an answer"),
    (aiohttp.InvalidURL, Code.InvalidInput, "it is not a URL"),
    (aiohttp.ClientPayloadError, Code.NetworkError, "the answer broke off"),
    (aiohttp.ClientError, Code.NetworkError, "the answer could not be read"),
    (OSError, Code.connect_failed, "it cannot be reached"),
)


def web_error(url: str, error: BaseException) -> WebError:
    """Return what an exception of a request means."""
    link: BaseException | None = error
    while link is not None:  # a refused address lies below what the connector made of it
        if isinstance(link, BlockedSocketError | BlockedAddressError):
            allow = f'; if it is one of yours, put "{place_of(url)}" into web.private'
            return WebError(f"{url}: {link}{allow}", Code.ssrf_blocked)
        link = getattr(link, "os_error", None) or link.__cause__ or link.__context__
    cause, words = next((cause, words) for kind, cause, words in _TABLE if isinstance(error, kind))
    return WebError(f"{url}: {words}", cause)


_TRACKING: Final = ("utm_", "mc_", "pk_", "_hs", "vero_", "oly_", "wt_")
_TRACKERS: Final = frozenset(
    "fbclid gclid gclsrc dclid gbraid wbraid msclkid yclid igshid twclid ttclid mkt_tok".split()  # noqa: SIM905 - a word each
)


def checked(url: str) -> str:
    """Return the URL in the form in which it is requested. Raises WebError (InvalidInput) for any other address."""
    try:
        return urls.checked(url)
    except urls.InvalidUrlError as error:
        raise WebError(str(error), Code.InvalidInput) from error


def without_tracking(url: str) -> str:
    """Return a checked URL without the keys by which visitors are told apart."""
    parts = urlsplit(url)
    if not parts.query:
        return url
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept_pairs = [(key, value) for key, value in pairs if not _tracks(key.lower())]
    return url if len(kept_pairs) == len(pairs) else urlunsplit((*parts[:3], urlencode(kept_pairs), ""))


def joined(base: str, target: str) -> str:
    """Return where a link or a redirect of a page leads. Raises WebError."""
    try:
        return checked(urljoin(base, target.strip()))
    except ValueError as error:
        raise WebError(f"{target[:200]!r}: it cannot be read", Code.InvalidInput) from error


def origin_of(url: str) -> str:
    """Return scheme, host and port of a checked URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def host_of(url: str) -> str:
    """Return the host of a checked URL, without its port."""
    return urlsplit(url).hostname or ""


def _tracks(key: str) -> bool:
    return key in _TRACKERS or key.startswith(_TRACKING)


AGENT: Final = f"Remit/{__version__}"
REDIRECTS: Final = 8
_CONNECT_S: Final = 10.0
_PIECE: Final = 64 * 1024
_AT_ONCE: Final = 32
_REDIRECT: Final = frozenset({301, 302, 303, 307, 308})
_GZIP: Final = 32 + zlib.MAX_WBITS


class FetchedPage(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, decoded."""

    url: str
    """The URL that was asked for."""
    final_url: str
    """The URL that answered, after redirects."""
    status: int
    headers: dict[str, str]
    """By lower-case name; of several of a name the first."""
    body: bytes
    truncated: bool = False
    """Whether the body is longer than the limit and was cut."""

    @property
    def content_type(self) -> str:
        """The media type, lower case, without parameters; empty where the server names none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Fetcher:
    """Requests pages and API answers within bounds."""

    def __init__(self, *, private: tuple[str, ...] = (), resolve: Resolver | None = None) -> None:
        self._allowed = frozenset(private)
        self._resolve = resolve or resolved
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close every connection; may be called twice."""
        if self._session is not None:
            await self._session.close()

    async def fetch(
        self,
        url: str,
        *,
        seconds: float,
        limit: int,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        data: bytes | None = None,
        redirects: int = REDIRECTS,
        before_hop: Callable[[str], Awaitable[Mapping[str, str]]] | None = None,
    ) -> FetchedPage:
        """Request a URL within `seconds`; of the decoded body at most `limit` bytes are read.

        `before_hop` is given the target of each redirect before it is followed. It returns the headers of that request
        in the place of `headers`, or refuses it by raising WebError.
        Raises WebError. A status of 400 or more is an answer, not an error: the caller decides.
        """
        target, hops = checked(url), 0
        requested = target
        try:
            async with asyncio.timeout(seconds):
                while True:
                    async with self._answer(method, target, headers or {}, data) as response:
                        location = response.headers.get("location") if response.status in _REDIRECT else None
                        if location is None or not redirects:
                            return await _page(requested, target, response, limit)
                    hops += 1
                    if hops > redirects:
                        raise WebError(f"{requested}: more than {redirects} redirects", Code.NetworkError)
                    target = joined(target, location)
                    if before_hop is not None:
                        headers = await before_hop(target)
        except (aiohttp.ClientError, OSError, BlockedAddressError) as error:
            raise web_error(target, error) from error

    @asynccontextmanager
    async def _answer(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        with private_if(place_of(url) in self._allowed):
            async with self._open().request(method, url, headers=headers, data=data, allow_redirects=False) as response:
                yield response

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=judging_connector(self._resolve, _AT_ONCE),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
                headers={"User-Agent": AGENT, "Accept-Encoding": "gzip, deflate"},
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


async def _page(requested: str, url: str, response: aiohttp.ClientResponse, limit: int) -> FetchedPage:
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        headers.setdefault(name.lower(), value)
    body, truncated = await _body(url, response, headers.get("content-encoding", "").strip().lower(), limit)
    return FetchedPage(
        url=requested, final_url=url, status=response.status, headers=headers, body=body, truncated=truncated
    )


async def _body(url: str, response: aiohttp.ClientResponse, encoding: str, limit: int) -> tuple[bytes, bool]:
    if encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
        raise WebError(f"{url}: its encoding {encoding[:40]!r} was not asked for", Code.parse_failed)
    inflate = None if encoding in {"", "identity"} else Inflate(limit + 1)
    body = bytearray()
    async for piece in response.content.iter_chunked(_PIECE):
        try:
            body += piece if inflate is None else inflate.feed(piece)
        except zlib.error as error:
            raise WebError(f"{url}: its compressed body is damaged", Code.parse_failed) from error
        if len(body) > limit:
            response.close()  # the rest is not read
            return bytes(body[:limit]), True
    return bytes(body), False


class Inflate:
    """Inflates gzip or deflate, and never to more than a limit."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._inflater = zlib.decompressobj(_GZIP)
        self._begun = self._ended = False
        """Whether something came out of the current member, and whether one before it is whole."""

    def feed(self, piece: bytes) -> bytes:
        """Return what a piece inflates to, as far as the limit allows. Raises zlib.error."""
        inflated = bytearray()
        while piece and self._left > 0:
            part = self._inflate(piece)
            self._left -= len(part)
            inflated += part
            piece = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
            if self._inflater.eof:
                self._inflater, self._begun, self._ended = zlib.decompressobj(_GZIP), False, True
        return bytes(inflated)

    def _inflate(self, piece: bytes) -> bytes:
        try:
            part = self._inflater.decompress(piece, self._left)
        except zlib.error:
            if self._begun:
                raise
            if self._ended:
                self._left = 0  # what follows the last member is padding
                return b""
            self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without its header, as some servers send
            part = self._inflater.decompress(piece, self._left)
        self._begun = True
        return part
