"""Pages that stay as they are now: what changed is made once for everyone who sees the same, and sent to all of them.

A channel stands for one page as one sort of reader sees it. It waits for news of the journal, makes the page again, and
keeps those regions that came out differently. Its followers get them as server-sent events: a region whole, or of a log
only the rows that changed. The identifier of an event says what the regions then were, so that a browser that
comes back with it gets what changed since, or nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from remit.api.route import SentEvent
from remit.redact import line
from remit.regex import regex

if TYPE_CHECKING:
    from remit.clock import Clock

COALESCE_S: Final = 0.025
"""Seconds in which news are gathered before a page is made again."""
SPACING_S: Final = 0.1
"""Seconds at least from one making of a page to the next."""
_REST: Final = 10
"""A large page is made again only after so many times the time that it took: a tenth of a core at most."""
_LONGEST_S: Final = 2.0
"""Seconds at most from one making of a page to the next."""
_REGION: Final = regex(rb'id="([a-z-]+)" data-live="([a-z]*)"[^<>]*><!--live-->(.*?)<!--/live-->', re.DOTALL)
_ROW: Final = regex(rb'<tr id="([^"]+)".*?</tr>', re.DOTALL)
_log: Final = logging.getLogger("remit.pages")
_EVENT: Final = "regions"

Make = Callable[[], Awaitable[bytes]]
"""Makes the page as it is now."""
Changed = Callable[[int], Awaitable[int]]
"""Waits for news after a mark; the new mark."""


class Made(NamedTuple):
    """A page's regions at a moment."""

    state: str
    """Names what they are."""
    regions: dict[str, bytes]
    logs: dict[str, dict[str, bytes]]
    """The rows of those that are logs, by their identifiers."""


class Rows(msgspec.Struct, frozen=True):
    """What changed of a log."""

    rows: str
    """Those that are new, or others now."""
    gone: list[str]
    """Identifiers of those that are no longer there."""


def regions_of(page: bytes) -> Made:
    """The regions of a page. Text in it cannot look like one: what others wrote is escaped."""
    regions, logs = dict[str, bytes](), dict[str, dict[str, bytes]]()
    digest = hashlib.sha256()
    for match in sorted(_REGION.findall(page)):
        name, kind, html = match[0].decode(), match[1], match[2]
        regions[name] = html
        if kind == b"log":
            logs[name] = {row[1].decode(): row[0] for row in _ROW.finditer(html)}
        digest.update(b"%b\0%b\0" % (match[0], html))
    return Made(digest.hexdigest()[:16], regions, logs)


def changes(old: Made | None, new: Made) -> dict[str, str | Rows]:
    """Return what a reader with the `old` regions needs for the new ones; without old ones they get all, whole."""
    if old is None:
        return {name: html.decode() for name, html in new.regions.items()}
    regions: dict[str, str | Rows] = {}
    for name, html in new.regions.items():
        if old.regions.get(name) == html:
            continue
        before, now = old.logs.get(name), new.logs.get(name)
        if before and now:
            rows = b"".join(row for key, row in now.items() if before.get(key) != row)
            regions[name] = Rows(rows.decode(), [key for key in before if key not in now])
        else:
            regions[name] = html.decode()
    return regions


class PageChannel:
    """One page as one sort of reader sees it."""

    def __init__(self, make: Make, news: AbstractContextManager[Changed], clock: Clock) -> None:
        self._make = make
        self._news_of = news
        self._clock = clock
        self._regions: Made | None = None
        self._news = asyncio.Event()
        self._over = False
        self._written: tuple[Made | None, Made, msgspec.Raw] | None = None
        self.followers = 0

    async def run(self) -> None:
        """Make the page again and again, until cancelled or the journal is closed."""
        mark = 0
        try:
            with self._news_of as changed:
                while True:
                    mark = await changed(mark)
                    if self._regions is not None:
                        await self._clock.sleep(COALESCE_S)
                    await self._clock.sleep(await self._once())
        except Exception as error:  # noqa: BLE001 - followers come back, and are told by the page itself
            _log.info("a live page ended: %s", line(str(error)))
        finally:
            self._over = True
            self._tell()

    async def _once(self) -> float:
        """Make the page; after how many seconds it may be made again.

        The first time also reads what the next ones keep, templates and stories: its length says nothing of theirs.
        """
        is_first, began = self._regions is None, self._clock.monotonic()
        regions = regions_of(await self._make())
        took = self._clock.monotonic() - began
        if self._regions is None or regions.state != self._regions.state:
            self._regions = regions
            self._tell()
        return SPACING_S if is_first else min(_LONGEST_S, max(SPACING_S, took * _REST))

    async def follow(self, last: str) -> AsyncIterator[SentEvent]:
        """The regions as JSON, unless they are those of `last`; then each time what changed."""
        before: Made | None = None
        while True:
            news, regions = self._news, self._regions
            if regions is not None and regions is not before:
                if before is not None or regions.state != last:
                    yield SentEvent(regions.state, _EVENT, self._changes(before, regions))
                before = regions
            if self._over:
                return
            await news.wait()

    def _changes(self, old: Made | None, new: Made) -> msgspec.Raw:
        """Return what changed, written once for all who had the same."""
        known = self._written
        if known is None or known[0] is not old or known[1] is not new:
            known = self._written = old, new, msgspec.Raw(msgspec.json.encode(changes(old, new)))
        return known[2]

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class PageChannels:
    """Every channel that someone follows."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[Hashable, tuple[PageChannel, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def followed(
        self, key: Hashable, make: Make, news: AbstractContextManager[Changed]
    ) -> AsyncIterator[PageChannel]:
        """The channel of a page, for as long as someone follows it; `make` raises what the page raises."""
        entry = self._open.get(key)
        if entry is None or entry[1].done():
            channel = PageChannel(make, news, self._clock)
            entry = self._open[key] = channel, asyncio.create_task(channel.run(), name="remit:live")
        channel, task = entry
        channel.followers += 1
        try:
            yield channel
        finally:
            channel.followers -= 1
            if not channel.followers:
                task.cancel()
                if self._open.get(key) is entry:
                    del self._open[key]
                await asyncio.wait([task])
