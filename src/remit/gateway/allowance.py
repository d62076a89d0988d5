"""What a principal may spend on models in a day, over all jobs and sessions of the journal.

The sum is taken from the journal, so no resume resets it. Calls of this process count at once; those of others within
LOOK_S seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.clock import DAY
from remit.gateway.spending import Spending, own
from remit.journal.event import Head, HeadQuery
from remit.journal.kinds import CommandCommitted, CommandStarted, decode

if TYPE_CHECKING:
    from remit.journal.journal import Journal

LOOK_S: Final = 30.0
"""Seconds after which the journal is looked at for calls of other processes."""
_KINDS: Final = ("job", "session")
_PAGE: Final = 1_000


class DayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for each principal and day (UTC); None: none."""

    tokens: int | None = None
    cost: float | None = None
    """US dollars."""


class Claim(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a call may take at most."""

    principal: str
    stream: str
    tokens: int
    cost: float


class _Stream(msgspec.Struct):
    """What a stream took today, as far as it was read."""

    seq: int = 0
    by: dict[str, Spending] = msgspec.field(default_factory=dict)
    principals: dict[str, str] = msgspec.field(default_factory=dict)


class Allowance:
    """Sums up the day."""

    def __init__(self, journal: Journal, limits: DayLimits) -> None:
        """Nothing is read as long as there is no limit."""
        self.limits = limits
        self._journal = journal
        self._day = -1
        self._streams: dict[str, _Stream] = {}
        self._looked = float("-inf")
        self._claims: list[Claim] = []

    async def claim(self, claim: Claim) -> str:
        """Count a call that is about to be announced; why it may not be made, if that would be too much for today.

        The claim counts until `release`, which is due as soon as the journal holds the call itself.
        """
        limits, principal, tokens, cost = self.limits, claim.principal, claim.tokens, claim.cost
        if limits.tokens is None and limits.cost is None:
            return ""
        self._streams.setdefault(claim.stream, _Stream())
        await self._look()
        spent_tokens, spent_cost = self._spent(principal)
        if limits.tokens is not None and spent_tokens + tokens > limits.tokens:
            took = f"{principal} used {spent_tokens} tokens today, and this call may use {tokens} more"
            return f"{took}; the limit is {limits.tokens}"
        if limits.cost is not None and spent_cost + cost > limits.cost:
            took = f"{principal} spent ${spent_cost:.4f} today and may cost ${cost:.4f} more now"
            return f"{took}; the limit is ${limits.cost:g}"
        self._claims.append(claim)
        return ""

    def release(self, claim: Claim) -> None:
        """The journal holds the call, or it was not made."""
        if claim in self._claims:
            self._claims.remove(claim)

    def _spent(self, principal: str) -> tuple[int, float]:
        found = [stream.by[principal].spent for stream in self._streams.values() if principal in stream.by]
        claims = [claim for claim in self._claims if claim.principal == principal]
        tokens = sum(one.tokens for one in found) + sum(one.tokens for one in claims)
        return tokens, sum(one.cost for one in found) + sum(one.cost for one in claims)

    async def _look(self) -> None:
        """Read what is new."""
        day = self._journal.clock.now() // DAY
        if day != self._day:
            self._day, self._streams, self._looked = day, {}, float("-inf")
        now = self._journal.clock.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            for kind in _KINDS:
                await self._find(kind)
        for name, stream in list(self._streams.items()):
            await self._read(name, stream)

    async def _find(self, kind: str) -> None:
        before: str | None = None
        while True:
            heads = await self._journal.heads(HeadQuery(kind=kind, before=before, limit=_PAGE))
            for head in heads:
                if self._is_todays(head):
                    self._streams.setdefault(head.stream, _Stream())
            if len(heads) < _PAGE:
                return
            before = heads[-1].stream

    def _is_todays(self, head: Head) -> bool:
        return head.updated_at >= self._day * DAY

    async def _read(self, name: str, stream: _Stream) -> None:
        events = await self._journal.read(name, stream.seq)
        stream.seq = events[-1].seq if events else stream.seq
        for event in own(events):
            if event.at < self._day * DAY or event.kind not in {CommandStarted.KIND, CommandCommitted.KIND}:
                continue
            payload = decode(event.kind, event.data)
            if isinstance(payload, CommandStarted):
                stream.principals[payload.invocation_id] = payload.principal
                stream.by.setdefault(payload.principal, Spending()).started(payload)
            elif isinstance(payload, CommandCommitted):
                found = stream.by.get(stream.principals.pop(payload.invocation_id, ""))
                if found is not None:
                    found.committed(payload)
