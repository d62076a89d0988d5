"""How often each rule decided, counted over the newest streams of a journal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.jobs.state import KIND as JOB
from remit.journal.event import Event, HeadQuery
from remit.journal.kinds import ConfirmationRequested, GateRefused, ToolInvocationStarted, decode
from remit.service.heads import CALL, PART, SESSION

if TYPE_CHECKING:
    from remit.journal.journal import Journal

STREAMS: Final = 500
"""Streams of each kind that are looked at, newest first."""
_AT_ONCE: Final = 32
"""Streams that are read at once."""
_KINDS: Final = frozenset({ConfirmationRequested.KIND, GateRefused.KIND, ToolInvocationStarted.KIND})


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule decided."""

    rule_id: str
    ran: int = 0
    """Calls that it let through; also those that a person approved."""
    asked: int = 0
    denied: int = 0
    """Calls that it refused; not those that were refused for another reason."""
    last_at: int = 0
    """Microseconds since the Unix epoch."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.ran + self.asked + self.denied


async def hits_of(journal: Journal, since: int) -> dict[str, Hits]:
    """What each rule decided at or after `since`, by its id, as far as the newest streams tell."""
    found: dict[str, Hits] = {}
    for kind in (JOB, SESSION, PART, CALL, CONFIRMATION):
        heads = await journal.heads(HeadQuery(kind=kind, limit=STREAMS))
        streams = [head.stream for head in heads if head.updated_at >= since]
        for start in range(0, len(streams), _AT_ONCE):
            for events in await asyncio.gather(*map(journal.read, streams[start : start + _AT_ONCE])):
                for event in events:
                    if event.at >= since and event.kind in _KINDS:
                        _count(found, event)
    return found


def _count(found: dict[str, Hits], event: Event) -> None:
    payload = decode(event.kind, event.data)
    match payload:
        case ToolInvocationStarted(attempt=1, rule_id=str(rule)):
            one = "ran"
        case ConfirmationRequested(rule_id=str(rule)):
            one = "asked"
        case GateRefused(code=Code.POLICY_DENIED.name, rule_id=str(rule)):
            one = "denied"
        case _:
            return
    if rule:
        before = found.get(rule) or Hits(rule_id=rule)
        now = max(before.last_at, event.at)
        found[rule] = msgspec.structs.replace(before, last_at=now, **{one: getattr(before, one) + 1})
