"""What models took, by job, principal, model or day, summed over the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.clock import DAY, isoformat
from remit.gateway.spending import Spending, own
from remit.jobs.state import KIND as JOB
from remit.jobs.state import stream_of
from remit.journal.event import Event, HeadQuery
from remit.journal.kinds import CommandCommitted, CommandStarted, decode
from remit.service.heads import SESSION

if TYPE_CHECKING:
    from remit.journal.journal import Journal

By = Literal["job", "principal", "model", "day"]
_PAGE: Final = 1_000
_KINDS: Final = frozenset({CommandStarted.KIND, CommandCommitted.KIND})


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One sum."""

    name: str
    """The job or session, the principal, `provider:model`, or the day as `2026-01-31` (UTC)."""
    calls: int
    """Requests, each attempt for itself."""
    tokens: int
    """Input and output; an answer that did not arrive counts as what was reserved for it."""
    cost: float
    """US dollars, estimated, as far as prices are known."""


class Usage:
    """Sums of one journal."""

    def __init__(self, journal: Journal) -> None:
        """Look at `journal`."""
        self._journal = journal

    # --- queries

    async def rows(self, by: By, *, since: int = 0) -> list[UsageRow]:
        """Sums of what was asked at or after `since` (microseconds since the Unix epoch), the largest first."""
        sums: dict[str, Spending] = {}
        for kind in (JOB, SESSION):
            before: str | None = None
            while heads := await self._journal.heads(HeadQuery(kind=kind, before=before, limit=_PAGE)):
                for head in heads:
                    if head.updated_at >= since:
                        _add(sums, by, since, await self._journal.read(head.stream))
                before = heads[-1].stream
        return _rows(sums)

    async def of(self, job: str) -> list[UsageRow]:
        """What one job took, by model."""
        sums: dict[str, Spending] = {}
        _add(sums, "model", 0, await self._journal.read(stream_of(job)))
        return _rows(sums)


def _rows(sums: dict[str, Spending]) -> list[UsageRow]:
    rows = [
        UsageRow(name=name, calls=found.spent.calls, tokens=found.spent.tokens, cost=round(found.spent.cost, 9))
        for name, found in sums.items()
    ]
    return sorted(rows, key=lambda row: (-row.cost, -row.tokens, row.name))


def _add(sums: dict[str, Spending], by: By, since: int, events: list[Event]) -> None:
    names: dict[str, str] = {}
    for event in own(events):
        payload = decode(event.kind, event.data) if event.kind in _KINDS and event.at >= since else None
        if isinstance(payload, CommandStarted):
            name = names[payload.invocation_id] = _name(by, event, payload)
            sums.setdefault(name, Spending()).started(payload)
        elif isinstance(payload, CommandCommitted) and payload.invocation_id in names:
            sums[names[payload.invocation_id]].committed(payload)


def _name(by: By, event: Event, started: CommandStarted) -> str:
    if by == "job":
        return event.stream.partition("/")[2]
    if by == "principal":
        return started.principal
    if by == "model":
        return f"{started.llm_provider}:{started.llm_model}"
    return isoformat(event.at // DAY * DAY).partition("T")[0]
