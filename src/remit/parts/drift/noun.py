"""Drift: what today's catalog, models, code and rules would change about what is recorded.

Derives recorded decisions again, each from the rules and the facts that are recorded with it (rule 18).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.engines.presence import present
from remit.errors import ChainBrokenError, PolicyError
from remit.journal import kinds as k
from remit.operation import Body, Patience, operation
from remit.parts.drift.backtest import BacktestReport, Retaker, backtest, collector_for
from remit.parts.drift.models import ModelCollector, ModelDrift, OutputDrift, SkillCollector, SkillDrift
from remit.parts.drift.needs import (
    CodeCollector,
    CodeDrift,
    NeedCollector,
    PatchCollector,
    VersionsReport,
    needs_of,
    retirable_of,
)
from remit.parts.drift.tools import (
    CallChanges,
    ToolCollector,
    ToolComparison,
    ToolDrift,
    change_of,
    check_arguments,
    told_of,
)
from remit.policy.groups import parse_groups
from remit.policy.record import overlays_named, policy_of
from remit.policy.rules import Policy
from remit.policy.verdict import agrees, verdict_on
from remit.record.decisions import DecisionCollector, FactReader, MissingFactError, taken_of
from remit.record.states import worker_words
from remit.record.walk import walk
from remit.service.replay import GoingOn, Resumes, going_on
from remit.tools.listings import ToolUse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remit.http.access import Access
    from remit.journal.journal import Journal
    from remit.policy.decision import Decision, Taint
    from remit.policy.verdict import RecordedFacts
    from remit.record.decisions import RecordedDecision
    from remit.service.noun_means import NounOpening
    from remit.service.parts import Parts
    from remit.service.service import Service


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

    async def judge(self, decided: RecordedDecision) -> None:
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

    async def _derived(self, decided: RecordedDecision) -> Decision:
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
            overlays = [await self._journal.blob(overlay) or b"" for overlay in overlays_named(text)]
            policy = policy_of(text, overlays)
        except (ChainBrokenError, PolicyError):
            return None
        return policy if policy.hash == digest else None


def _limited(policy: Policy, facts: RecordedFacts, decided: RecordedDecision) -> RecordedFacts:
    """The facts with what the gate counted of limits before this call."""
    query, taken = facts.query, taken_of(decided)
    if query.tool is None or query.facts is None or not policy.needs_facts:
        return facts
    limits = policy.needs(query.tool, query.key).limits
    keys = {limit.limit.key(limit.rule.id, query): taken[limit.rule.id] for limit in limits if limit.rule.id in taken}
    return replace(facts, query=replace(query, facts=replace(query.facts, taken=keys)))


class DriftReport(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between today and what was recorded."""

    since: int
    """Microseconds since the Unix epoch; 0: everything that is recorded."""
    decisions: int
    """Recorded decisions that today's rules were asked about."""
    tools: tuple[ToolDrift, ...]
    """Tools that differ, or some of whose calls would end otherwise, the worst first."""
    models: tuple[ModelDrift, ...]
    """Models that were asked, those first under whose name another version or model has answered since."""
    outputs: tuple[OutputDrift, ...]
    """Prompts that brought different answers."""
    code: tuple[CodeDrift, ...]
    """Versions of code that are not this process's, the worst first."""
    skills: tuple[SkillDrift, ...]
    """Skills that jobs took up and that are others today, or gone."""
    missing: dict[str, int]
    """Decisions that today's rules could not be asked about, by the reason."""
    unlisted: dict[str, str]
    """Providers that could not be listed, and why: nothing is said of their tools."""
    resumes: Resumes = ""
    """Of one job: whether it would go on under today's code, tools and models."""
    because: tuple[str, ...] = ()
    """Differences that do not stop it, or what would stop it first."""

    @property
    def differs(self) -> bool:
        """Return whether something harmful differs: calls that end otherwise, tools or code that broke or went."""
        if self.resumes == "no":
            return True
        tools = any(comparison.refused or comparison.asks or comparison.drift in _HARMFUL for comparison in self.tools)
        return tools or any(comparison.change in {"gone", "changed"} for comparison in self.code)


_HARMFUL: Final = frozenset({"gone", "breaking", "unknown"})


async def for_all_tools(_drift: DriftNoun, access: Access, _path: Mapping[str, Any]) -> None:
    """Raise Problem for a token that is for some tools only: a report tells of all."""
    access.require_all_tools("the calls that it tells of")


class DriftNoun:
    """Everything recorded against today, over one journal."""

    def __init__(self, parts: Parts, service: Service) -> None:
        self._parts = parts
        self._service = service

    # --- queries

    @operation(
        "drift.report",
        "GET /v1/drift",
        "read",
        "Say what is different today from what was recorded.",
        codes=(Code.JOB_NOT_FOUND, Code.SCOPE_REQUIRED),
        check=for_all_tools,
        held_s=60.0,
    )
    async def report(
        self, job: str = "", *, tool: str = "", model: str = "", since: int = 0, patience_s: Patience = None
    ) -> DriftReport:
        """Compare what is recorded with today's tools, models, code and rules.

        Of one job, one tool or one model, or of everything that was recorded at `since` or later (microseconds since
        the Unix epoch). Calls nothing. Raises NotFoundError or JournalError.
        """
        job = await self._service.jobs.find(job) if job else ""
        services, journal, catalog = self._parts.services, self._parts.journal, self._parts.services.catalog
        metas = {row.meta.name: row.meta for row in await catalog.tools(patience_s) if row.quarantined is None}
        tools = ToolCollector(catalog, tool, since, job)
        models = ModelCollector(journal, model, since, job)
        code, skills = CodeCollector(since, job), SkillCollector(since, job)
        judge = _Today(self._parts, metas, tool, job)
        decisions = collector_for(services.policy, judge.judge, since)
        chosen: list[Any] = (
            [models] if model and not tool else [tools, decisions] if tool else [tools, models, code, skills, decisions]
        )
        await walk(journal, chosen, job)
        await check_arguments(journal, tools, judge.changes)
        comparison = ToolComparison(journal, catalog)
        is_of_job = bool(job) and not (tool or model)
        resumes, because = await going_on(self._parts, job) if is_of_job else GoingOn("")
        return DriftReport(
            since=since,
            decisions=judge.decisions,
            tools=tuple(await comparison.drifts(tools.by_key, judge.changes)),
            models=tuple(models.models()),
            outputs=tuple(await models.outputs()),
            code=tuple(drift for drift in code.drifts(self._parts.programs.recipes) if drift.change != "same"),
            skills=tuple(await skills.drifts(self._parts.skills)),
            missing=decisions.missing,
            unlisted=dict(catalog.failures),
            resumes=resumes,
            because=because,
        )

    @operation(
        "drift.versions",
        "GET /v1/versions",
        "read",
        "Say which versions open jobs need.",
        codes=(Code.SCOPE_REQUIRED,),
        check=for_all_tools,
        held_s=60.0,
    )
    async def versions(self, patience_s: Patience = None) -> VersionsReport:
        """Say which versions open jobs need, whether a process that works now has them, and what can be retired.

        Raises JournalError.
        """
        journal, catalog = self._parts.journal, self._parts.services.catalog
        await catalog.tools(patience_s)
        uses, code, patches = NeedCollector(journal.clock.now()), CodeCollector(), PatchCollector()
        await walk(journal, [uses, code, patches])
        workers = await present(journal)
        drifts, used = code.drifts(self._parts.programs.recipes), tuple(uses.uses())
        return VersionsReport(
            open=sum(drift.open for drift in drifts if drift.kind != "child"),
            needs=needs_of(drifts, used, catalog, workers),
            retirable=retirable_of(drifts, used, self._parts.services.migrations, patches, workers),
            workers=tuple(worker_words(drift.started.owner) for drift in workers),
        )

    @operation(
        "drift.decisions",
        "GET /v1/decisions",
        "read",
        "Derive every recorded decision again from the record.",
        codes=(Code.SCOPE_REQUIRED,),
        check=for_all_tools,
        held_s=60.0,
    )
    async def decisions(self, since: int = 0) -> DecisionsReport:
        """Derive every decision at `since` (µs) or later again, from the rules and facts that are recorded with it.

        Raises JournalError.
        """
        deriver = Deriver(self._parts.journal, FactReader(self._parts.journal))
        collector = DecisionCollector(deriver.judge, result_tools=None, since=since)
        await walk(self._parts.journal, [collector])
        return deriver.report(collector.missing)

    @operation(
        "drift.uses",
        "GET /v1/tools/{tool}/uses",
        "read",
        "List the versions of a tool that calls were made under.",
        codes=(Code.SCOPE_REQUIRED,),
        check=for_all_tools,
    )
    async def uses(self, tool: str) -> list[ToolUse]:
        """List the versions of a tool that calls were made under, the newest first, and who made them."""
        return list(await self._parts.versions.uses(tool))

    @operation(
        "drift.schema",
        "GET /v1/schemas/{digest}",
        "read",
        "Show the schema behind a recorded hash.",
        codes=(Code.SCOPE_REQUIRED,),
        check=for_all_tools,
    )
    async def schema(self, digest: str) -> Any:
        """Return the schema behind a recorded hash; null if an older Remit recorded the hash alone."""
        return await self._parts.versions.schema(digest)

    @operation(
        "drift.backtest",
        "POST /v1/policy/backtest",
        "read",
        "Take every recorded decision again under other rules.",
        body=Body("BacktestBody", "Rules to try on what is recorded."),
        codes=(Code.POLICY_INVALID, Code.SCOPE_REQUIRED),
        check=for_all_tools,
        held_s=60.0,
        repeatable=True,
        example={"rules": [{"id": "no-mail", "effect": "deny", "tools": ["mail.*"]}]},
    )
    async def backtest(
        self,
        rules: list[dict[str, Any]],
        *,
        taint: Taint = "ask",
        groups: dict[str, list[str]] | None = None,
        since: int = 0,
    ) -> BacktestReport:
        """Take every recorded decision again under other rules, from the record alone.

        `rules`, `taint` and `groups` are as in a settings file; decisions at `since` or later count (microseconds since
        the Unix epoch). Calls nothing and asks no one. Raises PolicyError or JournalError.
        """
        services = self._parts.services
        policy = Policy.parse(rules, taint=taint, groups=parse_groups(groups or {}))
        metas = {tool.meta.name: tool.meta for tool in await services.catalog.tools(_PATIENCE_S)}
        return await backtest(self._parts.journal, policy, metas, since=since, remembers=services.remembered.count)


_PATIENCE_S: Final = 5.0
"""Seconds that servers still connecting are waited for: their tools are needed for old records alone."""


class _Today:
    """Asks today's rules about recorded decisions."""

    def __init__(self, parts: Parts, metas: Mapping[str, Any], tool: str, job: str) -> None:
        services = parts.services
        self._catalog, self._metas = services.catalog, metas
        self._tool, self._job = tool, job
        reader = FactReader(parts.journal, metas, beside=services.policy.needs_facts)
        self._retaker = Retaker(parts.journal, reader, services.policy, remembers=services.remembered.count)
        self.changes = CallChanges()
        self.decisions = 0

    async def judge(self, decided: RecordedDecision) -> None:
        """Ask about one, if its tool is offered today."""
        name = decided.payload.tool_name
        if (self._tool and name != self._tool) or (self._job and decided.origin.id != self._job):
            return
        today = self._metas.get(name)
        if today is None:
            return  # gone, withheld or not listed, which is told of the tool
        decision = await self._retaker.take(decided, today=today)
        self.decisions += 1
        change = change_of(decided, decision)
        if change is not None:
            self.changes.add(name, change, partial(told_of, decided, decision, change))


def open_drift(opening: NounOpening) -> DriftNoun:
    """Return what compares the journal with the tools, recipes and rules of this process."""
    return DriftNoun(opening.parts, opening.service)
