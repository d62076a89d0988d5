"""Derives recorded decisions again, each from the rules and the facts that are recorded with it (rule 18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from remit.errors import ChainBrokenError, PolicyError
from remit.journal import kinds as k
from remit.policy.recorded import overlays_named, policy_of
from remit.policy.verdict import agrees, verdict_on
from remit.record.decisions import MissingFactError, taken_of

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.policy.decision import Decision
    from remit.policy.rules import Policy
    from remit.policy.verdict import RecordedFacts
    from remit.record.decisions import Decided, FactReader

_MOST: Final = 100


class Underivable(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that its own rules and facts do not lead to."""

    stream: str
    seq: int
    step: str
    tool: str
    recorded: str
    """The effect and the rule, as `allow by small`."""
    derived: str


class DecisionsReport(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded decisions, derived again."""

    decisions: int
    same: int
    different: tuple[Underivable, ...]
    """The first hundred."""
    missing: dict[str, int]
    """Decisions that could not be derived, by the reason."""


class Deriver:
    """Derives decisions, one after the other."""

    def __init__(self, journal: Journal, reader: FactReader) -> None:
        self._journal = journal
        self._reader = reader
        self._policies: dict[str, Policy | None] = {}
        """By their hash; None: they cannot be read."""
        self._decisions = self._wrong = 0
        self._different: list[Underivable] = []

    async def judge(self, decided: Decided) -> None:
        """Derive a decision, and compare it with what was recorded. Raises MissingFactError or JournalError."""
        decision = await self._derived(decided)
        self._decisions += 1
        payload = decided.payload
        question = isinstance(payload, k.ConfirmationRequested)
        untrusted = payload.untrusted is not msgspec.UNSET or payload.untrusted_blob is not msgspec.UNSET
        if agrees(decision, decided.effect, payload.rule_id, question=question, untrusted=untrusted):
            return
        self._wrong += 1
        if len(self._different) < _MOST:
            self._different.append(
                Underivable(
                    stream=decided.event.stream,
                    seq=decided.event.seq,
                    step=payload.step,
                    tool=payload.tool_name,
                    recorded=f"{decided.effect} by {payload.rule_id}",
                    derived=f"{decision.effect} by {decision.rule_id}",
                )
            )

    def report(self, missing: dict[str, int]) -> DecisionsReport:
        """Return what was found, and what could not be derived."""
        return DecisionsReport(
            decisions=self._decisions,
            same=self._decisions - self._wrong,
            different=tuple(self._different),
            missing=missing,
        )

    async def _derived(self, decided: Decided) -> Decision:
        if not decided.payload.policy_kept:
            raise MissingFactError("an older Remit did not keep the rules")
        policy = await self._policy(decided.payload.policy_hash)
        facts = await self._reader.facts_of(decided, exact=True)
        return verdict_on(policy, _limited(policy, facts, decided))

    async def _policy(self, digest: str) -> Policy:
        if digest not in self._policies:
            self._policies[digest] = await self._read(digest)
        policy = self._policies[digest]
        if policy is None:
            raise MissingFactError("the rules cannot be read")
        return policy

    async def _read(self, digest: str) -> Policy | None:
        try:
            text = await self._journal.blob(digest) or b""
            overlays = [await self._journal.blob(one) or b"" for one in overlays_named(text)]
            policy = policy_of(text, overlays)
        except (ChainBrokenError, PolicyError):
            return None
        return policy if policy.hash == digest else None


def _limited(policy: Policy, facts: RecordedFacts, decided: Decided) -> RecordedFacts:
    """The facts with what the gate counted of limits before this call."""
    query, taken = facts.query, taken_of(decided)
    if query.tool is None or query.facts is None or not policy.needs_facts:
        return facts
    limits = policy.needs(query.tool, query.key).limits
    keys = {one.limit.key(one.rule.id, query): taken[one.rule.id] for one in limits if one.rule.id in taken}
    return replace(facts, query=replace(query, facts=replace(query.facts, taken=keys)))
