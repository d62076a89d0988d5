"""The search backend `folder`: the files of a site that lie on this machine, by the addresses at which it has them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from remit.codes import Code
from remit.errors import ProviderError
from remit.files.confined import ConfinedDirectory
from remit.files.index.search import FolderIndex
from remit.files.index.store import Index
from remit.providers.web.faults import WebError
from remit.providers.web.search import Hit, usable

if TYPE_CHECKING:
    from remit.blocking import Stop, Threads
    from remit.files.closed import Closed
    from remit.providers.web.fetcher import Fetcher

_PASSAGES_PER_FILE: Final = 4


class FolderBackend:
    """Ranks files by their best passages."""

    name: Final = "folder"

    def __init__(self, folder: Path, base: str, index_dir: Path, closed: Closed, threads: Threads) -> None:
        self._folder = folder
        self._base = base.rstrip("/")
        self._index_dir = index_dir
        self._closed = closed
        self._threads = threads

    async def ask(self, fetcher: Fetcher, query: str, count: int) -> list[Hit]:  # noqa: ARG002 - nothing is fetched
        """Search the folder. Raises WebError (WebProviderError)."""
        try:
            hits = await self._threads.stoppable(lambda stop: self._hits(query, count, stop))
        except (ProviderError, OSError) as error:
            raise WebError(f"folder: {error}", Code.WebProviderError) from error
        return usable(hits)[:count]

    def _hits(self, query: str, count: int, stop: Stop) -> list[Hit]:
        folder = self._folder.resolve(strict=True)
        index = FolderIndex(Index(self._index_dir, folder), ConfinedDirectory(folder), folder)
        found = index.search(query, _PASSAGES_PER_FILE * count, stop, lambda _done, _total: None, self._is_open)
        best = {match.hit.path: match for match in reversed(found.matches)}  # of each file the best passage
        ranked = sorted(best.values(), key=lambda match: -match.score)
        return [Hit(match.hit.title, f"{self._base}/{quote(match.hit.path)}", match.snippet) for match in ranked]

    def _is_open(self, path: str) -> bool:
        return str(self._folder / path) not in self._closed
