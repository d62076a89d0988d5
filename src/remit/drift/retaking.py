"""Takes recorded decisions again, under other rules or for other tools, from the record alone.

Other rules have other limits, so what was taken of them is counted again: by the calls that ran, in the order in which
they did, as far as the rules at hand would have let them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from remit.codes import Code
from remit.errors import JournalError, PolicyError
from remit.jobs.caller import overlay_of
from remit.journal import kinds as k
from remit.policy.recorded import overlay_of_text, overlays_named
from remit.policy.verdict import verdict_on
from remit.record.decisions import MissingFactError

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.policy.decision import Decision
    from remit.policy.limit import Limit
    from remit.policy.overlay import Overlay
    from remit.policy.rules import Policy
    from remit.policy.verdict import RecordedFacts
    from remit.record.decisions import Decided, FactReader
    from remit.tools.meta import ToolMeta

_NOTHING: Final = (0, Decimal(0))


class Retaker:
    """Takes decisions again, in the order in which they were recorded."""

    def __init__(self, journal: Journal, reader: FactReader, policy: Policy, *, remembers: bool = True) -> None:
        self._journal = journal
        self._reader = reader
        self._policy = policy
        self._remembers = remembers
        self._overlays: dict[tuple[str, str], tuple[Overlay, ...] | None] = {}
        """Additions to rules, by the hash of those and the job; None: they cannot be read."""
        self._taken: dict[str, tuple[int, Decimal]] = {}
        self._counted: set[tuple[str, str]] = set()

    async def take(self, decided: Decided, *, today: ToolMeta | None = None) -> Decision:
        """Return the decision; for a tool as it is `today`, if it is given. Raises MissingFactError or JournalError."""
        facts = await self._reader.facts_of(decided, today=today)
        policy = self._policy.under(await self._added(decided))
        if not self._remembers and facts.remembered:
            facts = replace(facts, remembered=())
        if not policy.needs_facts:
            return verdict_on(policy, facts)
        facts, keys = self._limited(policy, facts)
        decision = verdict_on(policy, facts)
        if isinstance(decided.payload, k.ToolInvocationStarted) and decision.effect != "deny":
            self._count(decided.payload.idempotency_key, keys)
        return decision

    def _limited(self, policy: Policy, facts: RecordedFacts) -> tuple[RecordedFacts, dict[str, Decimal]]:
        """The facts with what was taken of limits by now, and what the call itself takes, by key."""
        query = facts.query
        if query.tool is None or query.facts is None:
            return facts, {}
        limits: list[tuple[str, Limit]] = [
            (one.rule.id, one.limit)
            for one in policy.needs(query.tool, query.key).limits
            if one.met is None or one.met(query) is not False
        ]
        keys = {key: limit for rule, limit in limits if (key := limit.key(rule, query))}
        taken = {key: self._taken.get(key, _NOTHING) for key in keys}
        query = replace(query, facts=replace(query.facts, taken=taken))
        return replace(facts, query=query), {key: limit.amount(query) or Decimal(0) for key, limit in keys.items()}

    def _count(self, intent: str, amounts: Mapping[str, Decimal]) -> None:
        """Count a call that ran, whatever number of attempts it took."""
        for key, amount in amounts.items():
            if (key, intent) not in self._counted:
                self._counted.add((key, intent))
                calls, total = self._taken.get(key, _NOTHING)
                self._taken[key] = calls + 1, total + amount

    async def _added(self, decided: Decided) -> Sequence[Overlay]:
        """Return what the job or the client added to the rules for its own calls."""
        created = decided.origin.created
        own = decided.origin.root if created is not None and created.overlay else ""
        key = (decided.payload.policy_hash, own)
        if key not in self._overlays:
            self._overlays[key] = await self._read(decided.payload.policy_hash, decided)
        overlays = self._overlays[key]
        if overlays is None:
            raise MissingFactError("what the caller added to the rules cannot be read")
        return overlays

    async def _read(self, policy_hash: str, decided: Decided) -> tuple[Overlay, ...] | None:
        created = decided.origin.created
        try:
            text = await self._journal.blob(policy_hash) if policy_hash else None
            if text is None:
                return (overlay_of(created.overlay),) if created is not None and created.overlay else ()
            texts = [await self._journal.blob(one) for one in overlays_named(text)]
            return tuple(overlay_of_text(one) for one in texts if one is not None) if all(texts) else None
        except PolicyError:
            return None
        except JournalError as error:
            if error.code is not Code.BLOB_MISSING:
                raise
            return None
