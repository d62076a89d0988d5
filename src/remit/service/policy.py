"""Policy: what it says to a call, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from remit.operation import operation
from remit.policy.cases import CaseFacts, given_of, moment_of
from remit.policy.decision import Caller, CallerKind, Query
from remit.policy.explain import Explanation, explain
from remit.policy.limit import Limit, Per
from remit.policy.lint import LintFinding, lint_rules
from remit.policy.rule import Rule
from remit.policy.table import Table
from remit.record.decisions import Hits, Ruling, hits_of, rulings_of
from remit.tools.catalog import ResolveError
from remit.tools.names import key_of

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.tools.meta import ToolMeta


GIVEN: Final = ("at", "input", "seen", "taken")
"""The facts that an explanation may take as given."""


class PotView(msgspec.Struct, frozen=True, kw_only=True):
    """How full a pot is now."""

    pot: str
    per: Per
    zone: str
    max: str = ""
    """The largest sum, as a decimal number; empty: only calls are counted."""
    taken: str = ""
    """The part of it that is taken; empty: each job, principal or tool has a part of its own, or there is no sum."""
    most_calls: int | None = None
    calls: int | None = None
    """Calls that are counted; null: each job, principal or tool has a part of its own."""
    words: str
    """The same, in a line."""


class RateView(msgspec.Struct, frozen=True, kw_only=True):
    """How full a limit of calls is now."""

    limit: str
    """The pattern of the tools and models that it is about."""
    words: str
    """Its bound, such as `60/min for each principal`."""
    percent: float | None
    """The part that is taken; null: each value has the limit for itself."""


class PolicyRules:
    """The rules of this process. `unlisted` are the tools that no catalog lists."""

    def __init__(self, services: Services, unlisted: Callable[[], Sequence[ToolMeta]], principal: str) -> None:
        self._services = services
        self._unlisted = unlisted
        self._principal = principal

    # --- queries

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The configured rules, in the order of the file."""
        return self._services.policy.rules

    @property
    def unlisted(self) -> Sequence[ToolMeta]:
        """The tools that rules may name and no catalog lists. Raises UsageError."""
        return self._unlisted()

    @operation("policy.pots", "GET /v1/policy/pots", "read", "Show how full the pots of rules are.")
    async def pots(self) -> list[PotView]:
        """Show how full each pot that a rule names is now. Raises LimitUnprovenError."""
        limits = {rule.limit.pot: rule.limit for rule in self.rules if rule.limit is not None and rule.limit.pot}
        caller = Caller(principal=self._principal, kind="session")
        query = Query(tool=None, key="", args={}, caller=caller, now=self._services.journal.clock.now())
        keys = {name: limit.key("", query) for name, limit in limits.items() if not limit.by}
        totals = await self._services.takings.totals([key for key in keys.values() if key], "")
        return [_pot(limit, totals.get(keys.get(name, ""))) for name, limit in sorted(limits.items())]

    async def rates(self) -> list[RateView]:
        """Return how full each bound of the limits of calls is now. Raises JournalError."""
        turnstiles = self._services.turnstiles
        if turnstiles is None:
            return []
        fills = await turnstiles.fills()
        return [
            RateView(limit=pattern, words=words, percent=fills[pattern][bound] if pattern in fills else None)
            for pattern, limit in turnstiles.limits.items()
            for bound, words in limit.bounds().items()
        ]

    async def findings(self, patience_s: float | None = None) -> list[LintFinding]:
        """Return what is wrong with the rules or useless in them.

        Servers that are still connecting are waited for, but no longer than `patience_s` seconds.
        """
        tools = await self._services.catalog.tools(patience_s)
        return lint_rules(self.rules, [tool.meta for tool in tools])

    async def hits(self, since: int) -> dict[str, Hits]:
        """Return each rule's decisions at or after `since` (µs), by its id, over the newest jobs and sessions."""
        return await hits_of(self._services.journal, since)

    async def rulings(self, since: int, rule: str) -> list[Ruling]:
        """Each decision of a rule at or after `since` (µs), newest first, as far as the newest streams tell."""
        return await rulings_of(self._services.journal, since, rule)

    async def explain(
        self,
        tool: str,
        args: dict[str, Any],
        *,
        principal: str,
        kind: CallerKind = "session",
        recipe: str = "",
        given: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Explain policy's answer to a call, and the part of every rule in it; without a principal, for this process's.

        `given` may hold `at`, `input`, `seen` and `taken`, as tests of rules do; without `taken`, what the journal says
        of limits counts. Raises PolicyError.
        """
        table = Table(given or {}, "given", GIVEN)
        try:
            tool_found, args = await self._services.catalog.resolve(tool, args)
        except ResolveError as error:
            known = self._services.catalog.known(tool)
            meta = known.meta if known else self._unlisted_tool(tool)
            reason = f"{error.reason}. {error.remedy}".strip() if known or meta is None else ""
        else:
            known, meta, reason = tool_found, tool_found.meta, ""
        query = Query(
            tool=meta,
            key=known.key if known else key_of(meta.name) if meta else tool,
            args=args,
            caller=Caller(principal=principal or self._principal, kind=kind, recipe=recipe),
            contract_hash=known.contract_hash if known else "",
            prompt_hash=known.prompt_hash if known else "",
            now=moment_of(table, "at") or self._services.journal.clock.now(),
        )
        query = await self._with_facts(query, given_of(table), "taken" in table)
        found_out = explain(self._services.policy, query, await self._services.remembered.active())
        return replace(found_out, problems=(reason, *found_out.problems)) if reason else found_out

    def _unlisted_tool(self, name: str) -> ToolMeta | None:
        """Return the tool of a full name; of an alias, under which several agents have theirs, the first."""
        return next((meta for meta in self.unlisted if name in {meta.name, meta.alias}), None)

    async def _with_facts(self, query: Query, facts: CaseFacts, taken: bool) -> Query:
        """The query with what is given, and with what the journal says of limits where that is not."""
        policy = self._services.policy
        if query.tool is None or not policy.needs_facts:
            return query
        query = facts.to(policy, query)
        if taken or query.facts is None or query.tool is None:
            return query
        limits = policy.needs(query.tool, query.key).limits
        keys = [key for limit in limits if (key := limit.limit.key(limit.rule.id, query))]
        totals = await self._services.takings.totals(keys, "")
        return replace(query, facts=replace(query.facts, taken=totals))


def _pot(limit: Limit, taken: tuple[int, Decimal] | None) -> PotView:
    calls, total = taken or (None, None)
    return PotView(
        pot=limit.pot,
        per=limit.per,
        zone=limit.zone,
        max="" if limit.max is None else str(limit.max),
        taken="" if total is None or limit.max is None else str(total),
        most_calls=limit.calls,
        calls=calls,
        words=str(limit) if taken is None else limit.spent(taken),
    )
