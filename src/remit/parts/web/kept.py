"""Pages that are asked for again only if they changed: kept in the journal, for every process and after a restart.

A page is one blob, and one small index of the journal names the newest of them. Both can be lost: a page that is not
found is transferred again. Nothing is kept that a site means for one reader (`private`, `no-store`, a cookie), nor what
was fetched in a job with a subject, since an erasure has to reach all of it.

Search backends that blocked Remit are left alone for a while: in every process, and after a restart too.
"""

from __future__ import annotations

import hashlib
import logging
import zlib
from typing import TYPE_CHECKING, Final

import msgspec

from remit.canonical import sha256
from remit.clock import SECOND
from remit.errors import JournalError
from remit.journal.event import Blob, JournalFold
from remit.journal.kinds import decode
from remit.journal.proven import ProvenStream
from remit.parts.web.fetcher import FetchedPage
from remit.parts.web.kinds import SearchBlocked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.codes import Code
    from remit.journal.journal import Journal


_INDEX: Final = "web_pages"
_ATTEMPTS: Final = 20
_DAY: Final = 24 * 3_600 * SECOND
_DAYS_MOST: Final = 30
_ONE_READER: Final = frozenset({"no-store", "private"})
_CONDITIONS: Final = (("etag", "If-None-Match"), ("last-modified", "If-Modified-Since"))
_log: Final = logging.getLogger("remit.web")


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """A page in the index, which lists the one that was kept last at its end."""

    address: bytes
    """SHA-256 of its URL: the index itself says nothing of what was read."""
    digest: str
    size: int
    """Bytes of its blob."""
    until: int


class _Kept(msgspec.Struct, frozen=True):
    """The content of a blob. With its time no two are alike: bytes that were erased are never stored again."""

    page: FetchedPage
    at: int


class KeptPages:
    """The pages of a journal."""

    def __init__(self, journal: Journal, *, pages: int, size: int, days: int) -> None:
        self._journal = journal
        self._pages = pages
        self._size = size
        self._keep_us = min(days or _DAYS_MOST, _DAYS_MOST) * _DAY

    async def find(self, url: str, limit: int) -> FetchedPage | None:
        """Return the page of a URL, if it is kept and has at most `limit` bytes."""
        address = _address(url)
        try:
            entries, _ = await self._index()
            entry = next((candidate for candidate in entries if candidate.address == address), None)
            if entry is None or entry.until <= self._journal.clock.now():
                return None
            page = _page(entry, await self._journal.blob(entry.digest) or b"")
        except JournalError as error:
            _log.warning("web: the page kept of %s cannot be read: %s", url, error.message)
            return None
        return page if page is not None and page.final_url == url and len(page.body) <= limit else None

    async def keep(self, page: FetchedPage, stream: str) -> None:
        """Keep a page that was fetched for `stream`, in the place of the one that was kept of its URL."""
        try:
            head = await self._journal.head(stream)
            if head is None or not head.subject:
                await self._put(page)
        except JournalError as error:
            _log.warning("web: %s is not kept: %s", page.final_url, error.message)

    async def _put(self, page: FetchedPage) -> None:
        now, address = self._journal.clock.now(), _address(page.final_url)
        added: list[_Entry] = []
        data = zlib.compress(msgspec.msgpack.encode(_Kept(page, now)), 1) if _may_be_kept(page) else b""
        if 0 < len(data) <= self._size:
            added.append(_Entry(address, sha256(data), len(data), now + self._keep_us))
            await self._journal.put_blobs([Blob(added[0].digest, data, added[0].until)])
        for _ in range(_ATTEMPTS):
            before, position = await self._index()
            rest = [entry for entry in before if entry.address != address and entry.until > now]
            after = self._newest([*rest, *added])
            if after == before:
                return
            fold = JournalFold(_INDEX, position + 1, msgspec.msgpack.encode(after))
            if await self._journal.folds.keep([fold], position):
                await self._erase({entry.digest for entry in [*before, *added]} - {entry.digest for entry in after})
                return
        await self._erase({entry.digest for entry in added})

    def _newest(self, entries: Sequence[_Entry]) -> list[_Entry]:
        """The entries that there is room for."""
        entries_kept: list[_Entry] = []
        room = self._size
        for entry in reversed(entries):
            room -= entry.size
            if room < 0 or len(entries_kept) == self._pages:
                break
            entries_kept.insert(0, entry)
        return entries_kept

    async def _erase(self, digests: set[str]) -> None:
        if digests:
            await self._journal.put_blobs([Blob(digest, b"") for digest in sorted(digests)])

    async def _index(self) -> tuple[list[_Entry], int]:
        """The entries, and the position at which they are kept."""
        for fold in await self._journal.folds.read(_INDEX):
            try:
                return msgspec.msgpack.decode(fold.data, type=list[_Entry]), fold.position
            except msgspec.DecodeError:
                return [], fold.position  # the next page that is kept writes it again
        return [], 0


def conditions(page: FetchedPage | None) -> dict[str, str]:
    """Return the headers that ask for a page only if it changed; none: it cannot be asked so."""
    if page is None:
        return {}
    return {condition: page.headers[name] for name, condition in _CONDITIONS if name in page.headers}


def _may_be_kept(page: FetchedPage) -> bool:
    """Return whether a page is whole, the same for all readers, and can be asked for again."""
    directives = {word.partition("=")[0].strip() for word in page.headers.get("cache-control", "").lower().split(",")}
    own = directives & _ONE_READER or "set-cookie" in page.headers or "*" in page.headers.get("vary", "")
    return bool(conditions(page)) and not own and not page.truncated


def _page(entry: _Entry, data: bytes) -> FetchedPage | None:
    """The page in a blob, if that is what the index says."""
    if not data or sha256(data) != entry.digest:
        return None
    try:
        return msgspec.msgpack.decode(zlib.decompress(data), type=_Kept).page
    except (zlib.error, msgspec.DecodeError):
        return None  # of another version


def _address(url: str) -> bytes:
    return hashlib.sha256(url.encode()).digest()


KIND: Final = "search"
"""The kind of their streams."""


class Cooldowns:
    """Until when each backend is not asked, in the journal."""

    def __init__(self, journal: Journal, seconds: int) -> None:
        self._journal = journal
        self._seconds = seconds
        self._streams: dict[str, ProvenStream] = {}
        self._until: dict[str, int] = {}

    async def seconds_left(self, backend: str) -> int:
        """Return for how many seconds a backend is still left alone; 0: it may be asked. Raises ChainBrokenError."""
        stream = self._streams.setdefault(backend, ProvenStream(self._journal, f"{KIND}/{backend}"))
        for event in await stream.more():
            blocked = decode(event.kind, event.data)
            if isinstance(blocked, SearchBlocked):
                self._until[backend] = blocked.until
        return max(0, -((self._journal.clock.now() - self._until.get(backend, 0)) // SECOND))

    async def block(self, backend: str, cause: Code, seconds: float | None = None) -> None:
        """Leave a backend alone from now on: for so many seconds, or as long as the settings say."""
        until = self._journal.clock.now() + int((self._seconds if seconds is None else seconds) * SECOND)
        await self._journal.post(f"{KIND}/{backend}", KIND, SearchBlocked(cause=cause.name, until=until))
