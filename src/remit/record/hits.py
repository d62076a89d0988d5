"""Decisions of each rule, call by call and counted, over the newest streams of a journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.codes import Code
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.jobs.state import KIND as JOB
from remit.journal.event import Event, HeadQuery
from remit.journal.kinds import ConfirmationRequested, GateRefused, ToolInvocationStarted, decode
from remit.record.heads import CALL, PART, SESSION

if TYPE_CHECKING:
    from remit.journal.journal import Journal

STREAMS: Final = 500
"""Streams of each kind that are looked at, newest first."""
_AT_ONCE: Final = 32
"""Streams that are read at once."""
_KINDS: Final = frozenset({ConfirmationRequested.KIND, GateRefused.KIND, ToolInvocationStarted.KIND})


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule decided about one call."""

    rule_id: str
    verdict: Literal["ran", "asked", "denied"]
    at: int
    """Microseconds since the Unix epoch."""
    stream: str
    """Of the job or session that makes the call."""
    step: str
    tool: str
    """Empty for a question of a recipe."""
    confirmation: str = ""
    """The question, where it asked."""


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
    """Return what each rule decided at or after `since`, by its id, as far as the newest streams tell."""
    found: dict[str, Hits] = {}
    async for ruling in _rulings(journal, since):
        before = found.get(ruling.rule_id) or Hits(rule_id=ruling.rule_id)
        counted = {ruling.verdict: getattr(before, ruling.verdict) + 1}
        found[ruling.rule_id] = msgspec.structs.replace(before, last_at=max(before.last_at, ruling.at), **counted)
    return found


async def rulings_of(journal: Journal, since: int, rule: str) -> list[Ruling]:
    """Each decision of a rule at or after `since`, newest first, as far as the newest streams tell."""
    found = [ruling async for ruling in _rulings(journal, since) if ruling.rule_id == rule]
    return sorted(found, key=lambda ruling: -ruling.at)


async def _rulings(journal: Journal, since: int) -> AsyncIterator[Ruling]:
    for kind in (JOB, SESSION, PART, CALL, CONFIRMATION):
        heads = await journal.heads(HeadQuery(kind=kind, limit=STREAMS))
        streams = [head.stream for head in heads if head.updated_at >= since]
        sessions = {head.stream: f"{SESSION}/{head.labels['session']}" for head in heads if "session" in head.labels}
        for start in range(0, len(streams), _AT_ONCE):
            some = streams[start : start + _AT_ONCE]
            for stream, events in zip(some, await asyncio.gather(*map(journal.left, some)), strict=True):
                for event in events:
                    if event.at >= since and event.kind in _KINDS and (ruling := _ruling(stream, event)) is not None:
                        yield msgspec.structs.replace(ruling, stream=sessions.get(stream, ruling.stream))


def _ruling(stream: str, event: Event) -> Ruling | None:
    """The decision that an event tells of; None: it tells of none."""
    payload = decode(event.kind, event.data)
    verdict: Literal["ran", "asked", "denied"]
    question = ""
    match payload:
        case ToolInvocationStarted(attempt=1, rule_id=str(rule), step=step, tool_name=tool):
            verdict = "ran"
        case ConfirmationRequested(rule_id=str(rule), step=step, tool_name=tool):
            verdict, stream, question = "asked", stream.rpartition(f"/{CONFIRMATION}/")[0], payload.confirmation
        case GateRefused(code=Code.POLICY_DENIED.name, rule_id=str(rule), step=step, tool_name=tool):
            verdict = "denied"
        case _:
            return None
    if not rule:
        return None
    return Ruling(
        rule_id=rule, verdict=verdict, at=event.at, stream=stream, step=step, tool=tool, confirmation=question
    )
