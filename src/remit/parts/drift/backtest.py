"""A backtest of rules: every recorded decision, taken again under other rules.

Takes recorded decisions again, under other rules or for other tools, from the record alone.

Other rules have other limits, so what was taken of them is counted again: by the calls that ran, in the order in which
they did, as far as the rules at hand would have let them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import JournalError, PolicyError
from remit.jobs.caller import overlay_of
from remit.journal import kinds as k
from remit.policy.decision import EFFECTS, Effect
from remit.policy.record import overlay_of_text, overlays_named
from remit.policy.verdict import verdict_on
from remit.record.decisions import DecisionCollector, FactReader, MissingFactError
from remit.record.step import shown
from remit.record.walk import walk

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.policy.decision import Decision
    from remit.policy.limit import Limit
    from remit.policy.overlay import Overlay
    from remit.policy.rules import Policy
    from remit.policy.verdict import RecordedFacts
    from remit.record.decisions import Judge, RecordedDecision
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

    async def take(self, decided: RecordedDecision, *, today: ToolMeta | None = None) -> Decision:
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
            (limited_rule.rule.id, limited_rule.limit)
            for limited_rule in policy.needs(query.tool, query.key).limits
            if limited_rule.met is None or limited_rule.met(query) is not False
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

    async def _added(self, decided: RecordedDecision) -> Sequence[Overlay]:
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

    async def _read(self, policy_hash: str, decided: RecordedDecision) -> tuple[Overlay, ...] | None:
        created = decided.origin.created
        try:
            text = await self._journal.blob(policy_hash) if policy_hash else None
            if text is None:
                return (overlay_of(created.overlay),) if created is not None and created.overlay else ()
            texts = [await self._journal.blob(digest) for digest in overlays_named(text)]
            return tuple(overlay_of_text(digest) for digest in texts if digest is not None) if all(texts) else None
        except PolicyError:
            return None
        except JournalError as error:
            if error.code is not Code.BLOB_MISSING:
                raise
            return None


Direction = Literal["looser", "stricter", "people"]
"""Fewer obstacles than recorded; more; or a question to other people, or to more or fewer of them."""
_EXAMPLES: Final = 3


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose decision would be another one."""

    job: str
    """The job, session or call from outside."""
    step: str
    at: int
    """Microseconds since the Unix epoch."""
    args: str
    """The beginning of its arguments."""
    reason: str
    """Why the other rules decide so."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions that would change in the same way."""

    direction: Direction
    recorded: Effect
    now: Effect
    tool: str
    recorded_rule: str
    rule: str
    """The rule that decides now."""
    calls: int
    examples: tuple[Example, ...]
    """The first few."""


class Tallies(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions by what they were."""

    allow: int = 0
    ask: int = 0
    """Questions to people: what the rules cost."""
    deny: int = 0


class BacktestReport(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions as other rules would have taken them."""

    policy_hash: str
    since: int
    """Microseconds since the Unix epoch; 0: everything that is recorded."""
    decisions: int
    """Decisions that were taken again."""
    same: int
    recorded: Tallies
    now: Tallies
    changes: tuple[Change, ...]
    """Looser ones first, and of each the most frequent first."""
    missing: dict[str, int]
    """Decisions that could not be taken again, by the reason."""

    def has(self, *directions: Direction) -> bool:
        """Return whether a decision changes in one of these directions."""
        return any(change.direction in directions for change in self.changes)


async def backtest(
    journal: Journal, policy: Policy, tools: Mapping[str, ToolMeta], *, since: int = 0, remembers: bool = True
) -> BacktestReport:
    """Take every decision at `since` (µs) or later again under `policy`, from the record alone.

    `tools` are today's, for what an older Remit did not record of a tool. Raises JournalError.
    """
    judge = _Judge(journal, policy, tools, remembers=remembers)
    collector = collector_for(policy, judge.judge, since)
    await walk(journal, [collector])
    return judge.report(policy.hash, since, collector.missing)


def collector_for(policy: Policy, judge: Judge, since: int) -> DecisionCollector:
    """Return what gives `judge` the decisions at `since` (µs) or later, with the results that rules may ask for."""
    result_tools = (
        None if policy.needs_facts else frozenset[str]()
    )  # every tool's, since rules of jobs may ask for more
    return DecisionCollector(judge, result_tools=result_tools, since=since)


class _Judge:
    """Compares what was decided with what is decided now."""

    def __init__(self, journal: Journal, policy: Policy, tools: Mapping[str, ToolMeta], *, remembers: bool) -> None:
        self._retaker = Retaker(
            journal, FactReader(journal, tools, beside=policy.needs_facts), policy, remembers=remembers
        )
        self._questions: set[str] = set()
        self._recorded: dict[Effect, int] = dict.fromkeys(EFFECTS, 0)
        self._now: dict[Effect, int] = dict.fromkeys(EFFECTS, 0)
        self._changes: dict[tuple[Direction, Effect, Effect, str, str, str], tuple[list[Example], list[int]]] = {}

    async def judge(self, decided: RecordedDecision) -> None:
        """Take a decision again; a call that a person approved is the one that the question was about."""
        payload = decided.payload
        if isinstance(payload, k.ConfirmationRequested):
            self._questions.add(decided.call)
        elif isinstance(payload, k.ToolInvocationStarted) and (payload.attempt > 1 or decided.call in self._questions):
            with suppress(MissingFactError):
                await self._retaker.take(decided)  # which counts what it takes of limits
            return
        decision = await self._retaker.take(decided)
        self._recorded[decided.effect] += 1
        self._now[decision.effect] += 1
        direction = _direction(decided, decision)
        if direction is not None:
            self._note(direction, decided, decision)

    def report(self, policy_hash: str, since: int, missing: Mapping[str, int]) -> BacktestReport:
        """Return what was found, and what could not be taken again."""
        changes = [
            Change(
                direction=direction, recorded=recorded, now=now, tool=tool, recorded_rule=before, rule=rule,
                calls=count[0], examples=tuple(examples),
            )
            for (direction, recorded, now, tool, before, rule), (examples, count) in self._changes.items()
        ]  # fmt: skip
        decisions = sum(self._now.values())
        return BacktestReport(
            policy_hash=policy_hash,
            since=since,
            decisions=decisions,
            same=decisions - sum(change.calls for change in changes),
            recorded=Tallies(**self._recorded),
            now=Tallies(**self._now),
            changes=tuple(
                sorted(changes, key=lambda change: (_ORDER.index(change.direction), -change.calls, change.tool))
            ),
            missing=dict(sorted(missing.items(), key=lambda item: -item[1])),
        )

    def _note(self, direction: Direction, decided: RecordedDecision, decision: Decision) -> None:
        payload = decided.payload
        key = (direction, decided.effect, decision.effect, payload.tool_name, payload.rule_id, decision.rule_id)
        examples, count = self._changes.setdefault(key, ([], [0]))
        count[0] += 1
        if len(examples) < _EXAMPLES:
            examples.append(
                Example(
                    job=decided.origin.id,
                    step=payload.step,
                    at=decided.at,
                    args=shown(payload.args, payload.args_blob),
                    reason=decision.reason,
                )
            )


_ORDER: Final[tuple[Direction, ...]] = ("looser", "stricter", "people")


def _direction(decided: RecordedDecision, decision: Decision) -> Direction | None:
    before, now = EFFECTS.index(decided.effect), EFFECTS.index(decision.effect)
    if before != now:
        return "looser" if now < before else "stricter"
    payload = decided.payload
    if not isinstance(payload, k.ConfirmationRequested):
        return None
    same = (payload.approvals, payload.approvers) == (decision.approvals, decision.approvers)
    return None if same else "people"
