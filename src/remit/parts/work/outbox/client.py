"""HTTP of a forge: one request after another, pages, ETags, limits, and which failures leave a write in doubt.

Writes follow each other by a second at least, over all issues (contract: executors, "Forge recipe"). A refusal for a
limit is waited out, for it did nothing; a 5xx, or no answer, leaves a write in doubt, and nothing is sent again here.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import aiohttp

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import ProviderError
from remit.http.retry import retry_after
from remit.redact import line
from remit.version import __version__

if TYPE_CHECKING:
    from remit.clock import Clock

_BETWEEN_S: Final = 1.0
_WITHOUT_WORD_S: Final = 60.0
"""Seconds to wait at a limit that names no time."""
_PATIENCE_S: Final = 900.0
"""Seconds that limits may hold up one request; after them the call fails, and the row stays queued."""
_REQUEST_S: Final = 30.0
_LARGEST: Final = 20_000_000
_PAGES: Final = 1_000
_ADDRESS: Final = "Is the url in [outbox] that of its API?"
_TRIES: Final = 3
"""Requests for a read that the forge does not answer."""
_KEPT: Final = 200
_OK: Final = range(200, 300)
_FAULT: Final = 500
_UNCHANGED: Final = 304
_REFUSAL: Final = 400
_TOO_MANY: Final = 429
_CAUSES: Final = {
    400: Code.InvalidInput,
    401: Code.permission_denied,
    403: Code.permission_denied,
    404: Code.not_found,
    409: Code.InvalidInput,
    410: Code.not_found,
    413: Code.content_too_large,
    422: Code.InvalidInput,
}


class ForgeReply(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: Any
    """Decoded JSON; None for none."""

    @property
    def says(self) -> str:
        """The forge's own words for a refusal."""
        message = self.body.get("message") or self.body.get("error") if isinstance(self.body, dict) else None
        return line(str(message), 200) if message else f"HTTP {self.status}"


class ForgeClient:
    """Requests to one API, with one token."""

    def __init__(self, base: str, headers: Mapping[str, str], clock: Clock) -> None:
        self._base = base.rstrip("/")
        self._headers = {"user-agent": f"Remit/{__version__}", "accept": "application/json", **headers}
        self._clock = clock
        self._writing = asyncio.Lock()
        self._wrote: float | None = None
        self._known: OrderedDict[str, ForgeReply] = OrderedDict()
        """Answers by URL, for as long as their ETag holds."""

    async def pause(self, seconds: float) -> None:
        """Wait on the client's clock."""
        await self._clock.sleep(seconds)

    async def get(self, path: str, **query: str) -> Any:
        """Return what stands at a path. Raise ProviderError."""
        url = self._url(path, query)
        return self._formed(await self._read(url), url, dict | list)

    async def rows(self, path: str, **query: str) -> AsyncIterator[Any]:
        """Yield the rows of a list, page by page as its `Link` headers lead. Raise ProviderError."""
        first, urls_read = self._url(path, query), set[str]()
        url = first
        while url not in {"", *urls_read}:
            if len(urls_read) >= _PAGES:
                reason = f"{first} has more than {_PAGES:,} pages. {_ADDRESS}"
                raise ProviderError(reason, cause=Code.content_too_large)
            urls_read.add(url)
            reply = await self._read(url)
            for row in self._formed(reply, url, list):
                yield row
            url = self._next(reply.headers.get("link", ""))

    async def send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        """Write; return the answer. Raise ProviderError; its cause is BadGateway or NetworkError if it is in doubt."""
        async with self._writing:
            if self._wrote is not None:
                await self._clock.sleep(max(0.0, self._wrote + _BETWEEN_S - self._clock.monotonic()))
            try:
                reply = await self._within_limits(method, self._url(path, {}), body)
            finally:
                self._wrote = self._clock.monotonic()
        return self._accepted(reply).body

    def beside(self, name: str) -> str:
        """Return the path of another API of the same place, such as `graphql`: beside the version, if it has one."""
        return f"../{name}" if self._base.endswith("/v3") else name

    # --- requests

    async def _read(self, url: str) -> ForgeReply:
        """Return an answer, the kept one if the forge says that it still holds."""
        known = self._known.get(url)
        match = {"if-none-match": known.headers["etag"]} if known is not None else {}
        reply = await self._answered(url, match)
        if reply.status == _UNCHANGED and known is not None:
            self._known.move_to_end(url)
            return known
        if "etag" in self._accepted(reply).headers:
            self._known[url] = reply
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return reply

    async def _answered(self, url: str, headers: Mapping[str, str]) -> ForgeReply:
        """Read; again after a 5xx or no answer, which a read may. Raise ProviderError."""
        for left in reversed(range(_TRIES)):
            try:
                reply = await self._within_limits("GET", url, None, headers)
            except ProviderError as error:
                if not left or error.cause is Code.content_too_large:
                    raise
            else:
                if reply.status < _FAULT or not left:
                    return reply
            await self._clock.sleep(_BETWEEN_S)
        raise AssertionError

    async def _within_limits(
        self, method: str, url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None
    ) -> ForgeReply:
        """Send a request, again after each refusal for a limit. Raise ProviderError."""
        left = _PATIENCE_S
        while True:
            reply = await self._once(method, url, body, headers or {})
            pause = self._pause(reply)
            if pause is None:
                return reply
            left -= pause
            if left < 0:
                raise ProviderError(f"{self._base} takes no more requests for {pause:.0f} s", cause=Code.http_429)
            await self._clock.sleep(pause)

    def _pause(self, reply: ForgeReply) -> float | None:
        """Return how long a limit lasts; None: there is none."""
        headers = reply.headers
        spent = headers.get("x-ratelimit-remaining", headers.get("ratelimit-remaining")) == "0"
        secondary = reply.status == _TOO_MANY or "rate limit" in reply.says.lower()
        if reply.status not in {403, _TOO_MANY} or not (spent or secondary or "retry-after" in headers):
            return None
        if (after := retry_after(headers, self._clock.now())) is not None:
            return max(after, _BETWEEN_S)
        reset = _number(headers.get("x-ratelimit-reset", headers.get("ratelimit-reset", "")))
        if spent and reset is not None:
            return max(reset - self._clock.now() / SECOND, _BETWEEN_S)
        return _WITHOUT_WORD_S

    async def _once(
        self, method: str, url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> ForgeReply:
        limit = aiohttp.ClientTimeout(total=_REQUEST_S)
        try:
            async with (
                aiohttp.ClientSession(headers=self._headers, timeout=limit) as session,
                session.request(method, url, json=body, headers=headers, allow_redirects=False) as response,
            ):
                data = await response.content.read(_LARGEST + 1)
                while not response.content.at_eof() and len(data) <= _LARGEST:
                    data += await response.content.read(_LARGEST + 1 - len(data))
                names = {name.lower(): value for name, value in response.headers.items()}
                status = response.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            refused = isinstance(error, aiohttp.ClientConnectorError)
            reason = f"{self._base}: {line(str(error) or type(error).__name__, 200)}. {_ADDRESS}"
            raise ProviderError(reason, cause=Code.connect_failed if refused else Code.NetworkError) from error
        if len(data) > _LARGEST:
            raise ProviderError(
                f"{url} answers with more than {_LARGEST:,} bytes. {_ADDRESS}", cause=Code.content_too_large
            )
        return ForgeReply(status, names, _decoded(data))

    def _accepted(self, reply: ForgeReply) -> ForgeReply:
        """Return the answer of a request that was taken. Raise ProviderError."""
        if reply.status in _OK:
            return reply
        if reply.status >= _FAULT:
            raise ProviderError(f"{self._base}: {reply.says}", cause=Code.BadGateway)
        cause = _CAUSES.get(reply.status, Code.InvalidInput)
        hint = " Does the token allow it?" if cause in {Code.permission_denied, Code.not_found} else ""
        hint = hint if reply.status >= _REFUSAL else f" It leads elsewhere, where no token goes. {_ADDRESS}"
        raise ProviderError(f"{self._base}: {reply.says}.{hint}", cause=cause)

    @staticmethod
    def _formed(reply: ForgeReply, url: str, kind: type | UnionType) -> Any:
        """Return the body of an answer that was taken. Raise ProviderError for one of another form, or not JSON."""
        if not isinstance(reply.body, kind):
            raise ProviderError(
                f"{url} answers with something else than was asked for. {_ADDRESS}", cause=Code.BadGateway
            )
        return reply.body

    # --- addresses

    def _url(self, path: str, query: Mapping[str, str]) -> str:
        return f"{self._base}/{path}{'?' if query else ''}{urlencode(query)}"

    def _next(self, link: str) -> str:
        """Return the next page (RFC 8288); empty for none, and for one elsewhere: the token goes nowhere else."""
        for part in link.split(","):
            target, _, kind = part.partition(";")
            url = target.strip().removeprefix("<").removesuffix(">")
            if 'rel="next"' in kind and urlsplit(url)[:2] == urlsplit(self._base)[:2]:
                return url
        return ""


def _number(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 12 else None  # noqa: PLR2004 - no time has more


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None
