"""Rules of sites for robots (RFC 9309), and the pace at which one host is asked.

A site without a robots file, or that answers 4xx for it, allows everything; one that answers 5xx, or cannot be reached,
allows nothing. Rules are kept for a day. Requests to one host begin a pause apart, and a few are under way at once.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import protego

from remit.clock import SECOND, Clock
from remit.codes import Code
from remit.parts.web.fetcher import AGENT, Fetcher, WebError, origin_of
from remit.regex import regex

_LIMIT: Final = 500 * 1024
"""Bytes of a robots file that are read, as RFC 9309 asks."""
_SECONDS: Final = 15.0
_KEPT_US: Final = 24 * 3_600 * SECOND
_SITES: Final = 1_000
_AT_ONCE: Final = 6
"""Requests to one host that are under way, as many as browsers have."""
_LONGEST_PAUSE_S: Final = 30.0
_FIELDS: Final = (b"user-agent", b"allow", b"disallow", b"crawl-delay", b"sitemap")
_AT_THE_SITE: Final = frozenset(
    {Code.ssrf_blocked, Code.dns_failed, Code.connect_failed, Code.tls_failed, Code.timeout_connect, Code.InvalidInput}
)
"""Causes for which the page could not be reached either."""
_AGENT: Final = regex(rb"^(\s*user-agent\s*:\s*)([a-z_-]+)/[^#]*", re.IGNORECASE)
"""A robot with its version, which does not count (RFC 9309, 2.2.1)."""
_UNREACHABLE: Final = 500
_NOT_FOUND: Final = 400


class Rules(NamedTuple):
    """The rules of a site."""

    allows: Callable[[str], bool]
    pause_s: float
    """Seconds between two requests, as the site asks."""
    until: int
    """Microseconds since the Unix epoch until which the rules are kept."""
    failure: WebError | None = None
    """Why they are not known, so that nothing is allowed."""


class Robots:
    """The rules of the sites that were asked."""

    def __init__(self, fetcher: Fetcher, clock: Clock) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._sites: OrderedDict[str, Rules] = OrderedDict()
        self._asking: dict[str, asyncio.Lock] = {}

    async def check(self, url: str) -> Rules:
        """Return the rules of the site of a URL.

        Raises WebError: WebBlocked if they do not allow the URL, or what kept them from being read.
        """
        rules = await self._of(origin_of(url))
        if rules.failure is not None:
            cause = rules.failure.cause or Code.NetworkError
            raise WebError(str(rules.failure), cause, blocked_by=rules.failure.blocked_by)
        if not rules.allows(url):
            raise WebError(f"{url}: the site's robots.txt does not allow it", Code.WebBlocked, blocked_by=Code.http_403)
        return rules

    async def _of(self, origin: str) -> Rules:
        lock = self._asking.setdefault(origin, asyncio.Lock())
        async with lock:
            rules = self._sites.get(origin)
            if rules is None or rules.until <= self._clock.now():
                rules = self._sites[origin] = await self._ask(origin)
            self._sites.move_to_end(origin)
            while len(self._sites) > _SITES:
                self._asking.pop(self._sites.popitem(last=False)[0], None)
            return rules

    async def _ask(self, origin: str) -> Rules:
        until = self._clock.now() + _KEPT_US
        try:
            page = await self._fetcher.fetch(f"{origin}/robots.txt", seconds=_SECONDS, limit=_LIMIT)
        except WebError as error:
            cause = error.cause or Code.NetworkError
            reason = str(error).replace("/robots.txt", "", 1) if cause in _AT_THE_SITE else str(error)
            if cause in {Code.ssrf_blocked, Code.dns_failed}:
                raise WebError(reason, cause) from error
            return Rules(_nothing, 0.0, self._clock.now() + SECOND * 60, WebError(reason, cause))
        if page.status >= _UNREACHABLE:
            reason = f"{origin}/robots.txt: it answered {page.status}, which allows no page (RFC 9309)"
            failure = WebError(reason, Code.WebBlocked, blocked_by=Code.http_403)
            return Rules(_nothing, 0.0, self._clock.now() + SECOND * 60, failure)
        if page.status >= _NOT_FOUND:
            return Rules(_everything, 0.0, until)
        return parse(page.body, until)


def parse(text: bytes, until: int) -> Rules:
    """Return the rules of a robots file. Lines of other fields are left out, since they would end a group."""
    lines = [_AGENT.sub(rb"\1\2", line) for line in text.removeprefix(b"\xef\xbb\xbf").splitlines() if _is_rule(line)]
    parsed = protego.Protego.parse(b"\n".join(lines).decode("utf-8", "replace"))
    delay = parsed.crawl_delay(AGENT)
    return Rules(lambda url: bool(parsed.can_fetch(url, AGENT)), min(float(delay or 0), _LONGEST_PAUSE_S), until)


def _is_rule(line: bytes) -> bool:
    return line.partition(b":")[0].strip().lower() in _FIELDS


def _nothing(_url: str) -> bool:
    return False


def _everything(_url: str) -> bool:
    return True


class Pace:
    """Begins requests to one host a pause apart; one that takes long holds up none of the few beside it."""

    def __init__(self, clock: Clock, pause_s: float) -> None:
        self._clock = clock
        self._pause_s = pause_s
        self._hosts: dict[str, asyncio.Semaphore] = {}
        self._free: dict[str, int] = {}
        """When the next request may begin, in microseconds since the Unix epoch."""

    @asynccontextmanager
    async def turn(self, host: str, pause_s: float = 0.0) -> AsyncIterator[None]:
        """Begin at the host's next free moment; one that waits for it is charged to its own deadline."""
        async with self._hosts.setdefault(host, asyncio.Semaphore(_AT_ONCE)):
            now = self._clock.now()
            begin = max(now, self._free.get(host, 0))
            self._free[host] = begin + int(max(self._pause_s, pause_s) * SECOND)
            if len(self._free) > _SITES:
                self._forget(now)
            if begin > now:
                await self._clock.sleep((begin - now) / SECOND)
            yield

    def _forget(self, now: int) -> None:
        for host in [host for host, free in self._free.items() if free <= now]:
            del self._free[host], self._hosts[host]
