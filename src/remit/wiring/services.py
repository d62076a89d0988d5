"""The services of the gateway and its stages, as the settings say."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from remit.clock import Clock
    from remit.gateway.approvals import RememberedApprovals
    from remit.gateway.call_limits import CallLimits
    from remit.gateway.confirmations import Confirmations, FindStandIns
    from remit.gateway.model_request import Allowance, DayLimits
    from remit.gateway.proof import Proofs
    from remit.gateway.readiness import Probe, Readiness
    from remit.gateway.schema_gate import SchemaGate
    from remit.gateway.secrets import Secrets
    from remit.gateway.services import Services
    from remit.gateway.takings import Takings
    from remit.gateway.turnstiles import Turnstiles
    from remit.http.people import People
    from remit.journal.journal import Journal
    from remit.metrics import Registry
    from remit.models.fallback import Fallbacks
    from remit.models.prices import Price, Prices
    from remit.models.registry import Models
    from remit.models.tail import Tails
    from remit.policy.rules import Policy
    from remit.settings import Settings
    from remit.tools.catalog import Catalog
    from remit.tools.migration import Migrations


class Sources(msgspec.Struct, frozen=True):
    """Where the parts come from that are made of more than settings."""

    catalog: Callable[[], Catalog]
    policy: Callable[[], Policy]
    migrations: Callable[[], Migrations]
    probes: Callable[[], Mapping[str, Probe]]
    people: Callable[[], People | None] = lambda: None
    stand_ins: Callable[[], FindStandIns | None] = lambda: None


def services_of(settings: Settings, journal: Journal, sources: Sources) -> Services:
    """Say what the gateway and its stages work with. A part that the settings describe wrongly raises SettingsError."""
    return cast("Services", ServicesOnUse(settings, journal, sources))


class ServicesOnUse:
    """The parts of a `Services`, each made when it is first used: who only looks into the journal pays for no other.

    What the parts are is said there; `services_of` gives one of these as such.
    """

    def __init__(self, settings: Settings, journal: Journal, sources: Sources) -> None:
        self._settings = settings
        self._sources = sources
        self.journal = journal
        self.default_model = settings.models.default
        self.cache = settings.models.cache or None
        self.mismatch = settings.jobs.mismatch

    @cached_property
    def catalog(self) -> Catalog:
        return self._sources.catalog()

    @cached_property
    def policy(self) -> Policy:
        return self._sources.policy()

    @cached_property
    def migrations(self) -> Migrations:
        return self._sources.migrations()

    @cached_property
    def readiness(self) -> Readiness:
        from remit.gateway.readiness import Readiness

        required, clock = self._settings.readiness.required, self.journal.clock
        return Readiness(clock, self._sources.probes(), required, reach=self.catalog.reach)

    @cached_property
    def confirmations(self) -> Confirmations:
        from remit.gateway.confirmations import Confirmations, no_stand_ins

        stand_ins = self._sources.stand_ins() or no_stand_ins
        return Confirmations(self.journal, _proofs(self._settings), self._sources.people, stand_ins)

    @cached_property
    def remembered(self) -> RememberedApprovals:
        from remit.gateway.approvals import RememberedApprovals

        return RememberedApprovals(self.journal, self.confirmations, count=self._settings.policy.remembered)

    @cached_property
    def limits(self) -> CallLimits:
        return _limits(self._settings)

    @cached_property
    def takings(self) -> Takings:
        from remit.gateway.takings import Takings

        return Takings(self.journal)

    @cached_property
    def turnstiles(self) -> Turnstiles | None:
        return _turnstiles(self._settings, self.journal)

    @property
    def told_in(self) -> str:
        return self._settings.mcp.run

    @cached_property
    def secrets(self) -> Secrets:
        from remit.gateway.secrets import Secrets
        from remit.settings.sections.secrets import secret_tables

        tables = secret_tables(self._settings.secrets.named)
        return Secrets(tables, os.environ, self._settings.folder, self.journal.clock)

    @cached_property
    def allowance(self) -> Allowance:
        from remit.gateway.model_budgets import budgets_of
        from remit.gateway.model_request import Allowance

        budgets = budgets_of(self._settings.models.budgets)
        return Allowance(self.journal, _day_limits(self._settings), budgets)

    @cached_property
    def models(self) -> Models:
        return _models(self._settings, self.journal.clock)

    @cached_property
    def fallbacks(self) -> Fallbacks:
        return _fallbacks(self._settings)

    @cached_property
    def tails(self) -> Tails:
        from remit.models.tail import Tails

        return Tails()

    @cached_property
    def prices(self) -> Prices:
        from remit.models.prices import Prices

        return Prices(_prices(self._settings))

    @cached_property
    def metrics(self) -> Registry:
        return _metrics(self.journal)

    @cached_property
    def schema_gate(self) -> SchemaGate:
        from remit.gateway.schema_gate import SchemaGate

        return SchemaGate(self.limits.schema_gate, self.metrics)

    def govern(self, policy: Policy) -> None:
        """Have these rules decide about every call that comes in from now on."""
        self.policy = policy

    async def close(self) -> None:
        """Close what was opened."""
        turnstiles: Turnstiles | None = vars(self).get("turnstiles")
        if turnstiles is not None:
            await turnstiles.close()
        if "models" in vars(self):
            await self.models.close()


def policy_of(settings: Settings) -> Policy:
    """The rules. Raises SettingsError."""
    from remit.policy.groups import parse_groups
    from remit.policy.pots import filled
    from remit.policy.rules import Policy

    rules = settings.policy
    return Policy.parse(filled(rules.rules, rules.pots), taint=rules.taint, groups=parse_groups(rules.groups))


def _metrics(journal: Journal) -> Registry:
    """The metrics of this process: first how long commits take, and what waits to be written."""
    from remit.metrics import Registry

    metrics = Registry()
    commits = metrics.histogram("journal_commit_seconds", "Seconds that an awaited commit took.")
    journal.took = commits.taker()
    metrics.gauge("journal_backlog_bytes", "Bytes submitted to the journal and not yet written.", journal.backlog)
    return metrics


def _proofs(settings: Settings) -> Proofs:
    from remit.gateway.proof import Proofs

    signers = settings.confirm.allowed_signers
    return Proofs(settings.confirm.proof, Path(signers) if signers else None, own=settings.confirm.own)


def _models(settings: Settings, clock: Clock) -> Models:
    from remit.models.registry import Endpoints, Models

    chosen = settings.models
    endpoints = Endpoints(
        openai=chosen.openai_url,
        anthropic=chosen.anthropic_url,
        google=chosen.google_url,
        ollama=chosen.ollama_url,
        patience_s=chosen.patience_seconds,
        at_once=chosen.at_once,
    )
    return Models(endpoints, os.environ, settings.folder, clock)


def _fallbacks(settings: Settings) -> Fallbacks:
    """The rules of what follows a question that failed. Raises SettingsError."""
    from remit.models.fallback import Fallbacks, fallbacks_of, retried_of
    from remit.tools.meta import Retry

    chosen = settings.models
    longest = max(chosen.longest_pause_seconds * 1_000, chosen.first_pause_ms)
    retry = Retry(attempts=chosen.attempts, first_delay_ms=chosen.first_pause_ms, max_delay_ms=longest)
    return Fallbacks(fallbacks_of(chosen.fallbacks), retry, retried_of(chosen.retried))


def _turnstiles(settings: Settings, journal: Journal) -> Turnstiles | None:
    """The limits of calls. Raises SettingsError."""
    if not settings.limits.tools:
        return None
    from remit.gateway.turnstiles import Turnstiles
    from remit.settings.sections.calls import call_limits

    return Turnstiles(journal, call_limits(settings.limits))


def _day_limits(settings: Settings) -> DayLimits:
    """The limits in force; 0 means no limit."""
    from remit.gateway.model_request import DayLimits

    return DayLimits(tokens=settings.models.day_tokens or None, cost=settings.models.day_cents / 100 or None)


def _prices(settings: Settings) -> dict[str, Price]:
    """Prices of your own, by model. Raises SettingsError."""
    from remit.errors import SettingsError
    from remit.models.prices import Price

    prices: dict[str, Price] = {}
    for table in settings.models.prices:
        fields = {name: value for name, value in table.items() if name != "model"}
        try:
            prices[msgspec.convert(table.get("model"), str)] = msgspec.convert(fields, Price, strict=False)
        except msgspec.ValidationError as error:
            reason = f"models.prices: {error}"
            raise SettingsError(reason, remedy="docs/models.md shows the keys of a price.") from error
    return prices


def _limits(settings: Settings) -> CallLimits:
    from remit.gateway.call_limits import CallLimits

    return CallLimits(
        schema_gate=settings.tools.schema_gate,
        unprotected=settings.tools.unprotected,
        trusted_output=settings.tools.trusted_output,
        always_trusted_output=settings.tools.always_trusted_output,
        untrusted_output=settings.tools.untrusted_output,
        max_value_bytes=settings.tools.max_value_bytes,
        confirm_expires_s=settings.confirm.expires_seconds,
        max_questions=settings.confirm.max_open,
        evidence_inline_bytes=settings.evidence.inline_limit_bytes,
        evidence_raw_bytes=settings.evidence.raw_limit_bytes,
        evidence_items=settings.evidence.max_items_per_report,
        evidence_days=settings.evidence.retention_days,
    )
