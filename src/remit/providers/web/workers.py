"""Extraction in processes of their own, and what is said of a page that takes too much of one."""

from __future__ import annotations

from remit.codes import Code
from remit.process.workers import Workers
from remit.providers.web.extraction import Extract, Job
from remit.providers.web.faults import WebError


class Extractors:
    """Extracts text in at most so many processes at once."""

    def __init__(self, processes: int = 2, seconds: float = 20.0) -> None:
        """Give each page at most `seconds` of a process."""
        self._workers: Workers[Extract] = Workers("remit.providers.web.extraction", Extract, processes, seconds)
        self._seconds = seconds

    async def extract(self, html: str, url: str) -> Extract:
        """Return the main text of a page. Raises WebError (parse_failed) for one that takes too much."""
        try:
            return await self._workers.ask(Job(html, url))
        except TimeoutError as error:
            why = f"{url}: its text was not found within {self._seconds:g} s"
            raise WebError(why, Code.parse_failed) from error
        except ConnectionError as error:
            raise WebError(f"{url}: finding its text took too much memory", Code.parse_failed) from error

    async def close(self) -> None:
        """End every process; may be called twice."""
        await self._workers.close()
