"""The sum that a principal may spend on models in a day, over all jobs and sessions of the journal.

The sums are those of the journal (sums.py), so no resume resets them, and a question costs the same however many jobs
the day has had. What this process has announced counts from then on, even where the journal's reader lags behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.clock import DAY
from remit.gateway.sums import ModelSums

if TYPE_CHECKING:
    from remit.journal.journal import Journal

LOOK_S: Final = 30.0
"""Seconds after which an announced call is in the sums."""


class DayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for each principal and day (UTC); None: none."""

    tokens: int | None = None
    cost: float | None = None
    """US dollars."""


class Claim(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a call may take at most."""

    principal: str
    tokens: int
    cost: float


class Allowance:
    """Compares the day's sums with its limits."""

    def __init__(self, journal: Journal, limits: DayLimits) -> None:
        self.limits = limits
        self.sums = ModelSums(journal)
        self._clock = journal.clock
        self._claims: list[Claim] = []
        self._announced: dict[str, tuple[Claim, float]] = {}
        """Calls that the journal holds and the sums may not, by their identifier, and since when."""

    async def claim(self, claim: Claim) -> str:
        """Count a call that is about to be announced; why it may not be made, if that would be too much for today.

        The claim counts until `release`, or until the sums hold the call that was `announced` for it.
        """
        limits, principal, tokens, cost = self.limits, claim.principal, claim.tokens, claim.cost
        if limits.tokens is None and limits.cost is None:
            return ""
        day = self._clock.now() // DAY
        if self.sums.seen is None:
            self.sums.seen = set()
        await self.sums.refresh((day,))
        spent_tokens, spent_cost = self._spent(day, principal)
        if limits.tokens is not None and spent_tokens + tokens > limits.tokens:
            took = f"{principal} used {spent_tokens} tokens today, and this call may use {tokens} more"
            return f"{took}; the limit is {limits.tokens}"
        if limits.cost is not None and spent_cost + cost > limits.cost:
            took = f"{principal} spent ${spent_cost:.4f} today and may cost ${cost:.4f} more now"
            return f"{took}; the limit is ${limits.cost:g}"
        self._claims.append(claim)
        return ""

    def announced(self, claim: Claim, invocation: str) -> None:
        """The journal holds the call."""
        if claim in self._claims:
            self._claims.remove(claim)
            self._announced[invocation] = (claim, self._clock.monotonic())

    def release(self, claim: Claim) -> None:
        """The call has ended, or was not made."""
        if claim in self._claims:
            self._claims.remove(claim)

    def _spent(self, day: int, principal: str) -> tuple[int, float]:
        now, seen = self._clock.monotonic(), self.sums.seen or set()
        self._announced = {
            invocation: (claim, at)
            for invocation, (claim, at) in self._announced.items()
            if invocation not in seen and now - at < LOOK_S
        }
        seen.clear()
        spent = self.sums.spent(day, principal)
        claims = [*self._claims, *(claim for claim, _ in self._announced.values())]
        mine = [claim for claim in claims if claim.principal == principal]
        return spent.tokens + sum(one.tokens for one in mine), spent.cost + sum(one.cost for one in mine)
