"""Sends what ended since the kept position, a page of the journal at a time, until the collector has it."""

from __future__ import annotations

import asyncio
import logging
import urllib.error
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from remit.errors import AppendConflictError
from remit.http.retry import retry_after
from remit.journal.event import JournalFold
from remit.parts.audit.collector import deliver, encode
from remit.parts.audit.formats.otlp import request
from remit.parts.audit.telemetry.spans import KINDS, Span, Spans
from remit.settings.pictures import address
from remit.tasks import first
from remit.threads import Threads

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.journal.leases import HeldLease
    from remit.metrics import Registry
    from remit.parts.audit.telemetry.settings import TelemetryTarget

_log: Final = logging.getLogger("remit.telemetry")
FOLD: Final = "telemetry"
_PAGE: Final = 500
"""Events that are read at once, and so about the spans of a request."""
_KEPT: Final = 1_000
"""So many positions may be read again after a crash, if nothing of them was sent."""
_SPACING_S: Final = 1.0
"""Spans are gathered for so long."""
_SILENCE_S: Final = 10.0
_LONGEST_S: Final = 300.0
_INVALID: Final = frozenset({400, 413, 422})
"""Answers that say that the spans themselves are at fault: the same ones would be refused again."""


class Exporter:
    """Sends the spans of one journal for as long as this process is the one that does.

    It sends until `ending` is set: what is recorded then is the last; it ends once that is sent, or fails.
    """

    def __init__(
        self,
        journal: Journal,
        target: TelemetryTarget,
        metrics: Registry,
        ending: asyncio.Event,
        *,
        values: bool,
    ) -> None:
        self._journal, self._target, self._values = journal, target, values
        self.ending = ending
        self._tell: Callable[[str], object] = str
        self._threads = Threads(1)
        self._position = self._saved = 0
        self._spans = metrics.counter(
            "telemetry_spans_total", "Spans that this process sent, with what the collector did with them.", "answer"
        )
        self._failures = metrics.counter("telemetry_failures_total", "Requests with spans that failed.")

    async def run(self, held: HeldLease, tell: Callable[[str], object]) -> None:
        """Send what ends from when the stream of the lease began; return once the lease is lost, or `ending` is met.

        `tell` is told why the collector takes nothing, and nothing once it does.

        Raise JournalError.
        """
        self._tell = tell
        fold = await self._journal.folds.read(FOLD)
        self._position = self._saved = fold[0].position if fold else 0
        spans, mark, more = Spans(self._journal, values=self._values), 0, False
        while (head := await held.current()) is not None:
            if not more:  # before the look, so that nothing is missed
                mark, _ = await first(self._journal.changed(mark), self.ending.wait())
                mark = mark or 0
            before, last = self._position, self.ending.is_set()
            more = await self._page(spans, held, head.created_at)
            if last and not more:
                return
            if not more or self._position == before:
                await self._pause(_SPACING_S)

    async def _page(self, spans: Spans, held: HeldLease, began: int) -> bool:
        """Send the spans of the next page of the journal; whether there is more."""
        page = await self._journal.scan(self._position, KINDS, _PAGE)
        ended = [
            span
            for placed in page.events
            for span in await spans.of(placed.event)
            if placed.event.at >= began  # what ended before is for `remit export`
        ]
        if ended:
            await self._send(ended, held)
        self._position = page.position
        if ended or self._position - self._saved >= _KEPT:
            fold = JournalFold(name=FOLD, position=self._position, data=b"")
            if self._position > self._saved and await self._journal.folds.keep([fold], self._saved):
                self._saved = self._position
        return page.more

    async def _send(self, spans: list[Span], held: HeldLease) -> None:
        """Send spans until the collector takes or refuses them. Raise AppendConflictError if the lease is lost."""
        body, failures = encode(request(spans)), 0
        while not await self._sent(body, len(spans), failures):
            failures += 1
            if self.ending.is_set():
                raise AppendConflictError("the command ends; the next process that sends spans sends these")
            if await held.current() is None:
                raise AppendConflictError("another process sends spans now")

    async def _sent(self, body: bytes, count: int, failures: int) -> bool:
        """Make one attempt, and wait after one that failed; whether nothing is left to send."""
        url, where = self._target.url, address(self._target.url)
        try:
            rejected = await self._threads.run(partial(deliver, body, url, self._target.headers, _SILENCE_S))
        except urllib.error.HTTPError as error:
            if error.code in _INVALID:
                self._count(0, count)
                _log.warning("%s refused %d spans: HTTP %d", where, count, error.code)
                return True
            reason, pause_s = f"HTTP {error.code}", retry_after(error.headers, self._journal.clock.now()) or 0.0
        except OSError as error:
            reason, pause_s = str(error), 0.0
        else:
            self._count(count - rejected, rejected)
            self._tell("")
            return True
        self._failures.add()
        self._tell(f"{where} takes no spans: {reason}")
        _log.warning("%s takes no spans: %s", where, reason)
        await self._pause(min(max(2.0 ** min(failures, 20), pause_s), _LONGEST_S))
        return False

    async def _pause(self, seconds: float) -> None:
        if not self.ending.is_set():
            await first(self._journal.clock.sleep(seconds), self.ending.wait())

    def _count(self, taken: int, refused: int) -> None:
        self._spans.add("taken", by=taken)
        self._spans.add("refused", by=refused)
