"""Whether streams are what was recorded: chains, heads, values, answers to questions, and what follows from what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.clock import DAY, isoformat
from remit.codes import Code
from remit.errors import ChainBrokenError
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.gateway.remembered_calls import RememberedCalls
from remit.gateway.sums import ModelSums
from remit.record.consistency import Consistency
from remit.record.views import VerifyReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remit.gateway.services import Services
    from remit.journal.event import Event, Head
    from remit.journal.kinds import Payload


class Verification:
    """Checks streams one after the other, then what they say of each other."""

    def __init__(self, services: Services) -> None:
        self._journal = services.journal
        self._confirmations = services.confirmations
        self._allowed = RememberedCalls(services.journal, services.confirmations)
        self._consistency = Consistency(services.journal)
        self._proven = set[str]()
        self._streams = self._events = self._erased = self._sealed = self._signed = self._unchecked = 0
        self._pruned = self._removed = 0
        self._damaged = set[str]()
        self._problems: list[tuple[Code, str]] = []

    async def check(self, head: Head) -> None:
        """Check a stream."""
        self._streams += 1
        reading = self._consistency.reading(head.stream)

        async def visit(events: Sequence[Event], payloads: Sequence[Payload | None]) -> None:
            self._allowed.note(events, payloads)
            await reading.take(events, payloads)

        try:
            examined = await self._journal.examine(head.stream, self._proven, visit)
        except ChainBrokenError as error:
            self._report(head.stream, [(error.code, error.message)])
            return
        self._events, self._erased = self._events + examined.events, self._erased + examined.erased
        self._sealed += examined.sealed
        if examined.pruned:
            self._pruned, self._removed = self._pruned + 1, self._removed + examined.pruned
            return
        await self._consistency.add(reading)
        self._report(head.stream, ((Code.RECORD_CONTRADICTED, text) for text in reading.contradictions))
        if head.kind == CONFIRMATION:
            checked = await self._confirmations.check(head)
            self._signed, self._unchecked = self._signed + checked.signed, self._unchecked + checked.unchecked
            self._report(head.stream, checked.problems)

    async def check_all(self) -> None:
        """Check what belongs to no stream: the storage itself, and sums that are kept."""
        self._problems += [(Code.JOURNAL_CORRUPT, line) for line in await self._journal.integrity()]
        for day in await ModelSums(self._journal).differing():
            text = f"what models took on {isoformat(day * DAY)[:10]} is not what is kept of it in the table folds"
            self._problems.append((Code.JOURNAL_CORRUPT, f"{text}; empty the table: it is made again from the events"))

    async def check_calls(self) -> None:
        """Check the calls of all streams against the approvals that they rest on."""
        for stream, text in await self._allowed.problems():
            self._report(stream, [(Code.APPROVAL_UNPROVEN, text)])
        for stream, words in await self._consistency.between():
            self._report(stream, [(Code.RECORD_CONTRADICTED, f"{stream}: {words}")])

    @property
    def report(self) -> VerifyReport:
        """The findings, and the counts of what was checked."""
        return VerifyReport(
            streams=self._streams,
            events=self._events,
            problems=tuple(text for _, text in self._problems),
            erased=self._erased,
            codes=tuple(code.name for code, _ in self._problems),
            sealed=self._sealed,
            damaged=len(self._damaged),
            signed=self._signed,
            unchecked=self._unchecked,
            pruned=self._pruned,
            removed=self._removed,
        )

    def _report(self, stream: str, problems: Iterable[tuple[Code, str]]) -> None:
        found = [*problems]
        self._problems += found
        if found:
            self._damaged.add(stream)
