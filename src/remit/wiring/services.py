"""What the gateway and its stages work with, as the settings say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from remit.clock import Clock
from remit.errors import SettingsError
from remit.gateway.allowance import Allowance, DayLimits
from remit.gateway.confirmations import Confirmations
from remit.gateway.proof import Proofs
from remit.gateway.readiness import Probe, Readiness
from remit.gateway.remembered import RememberedApprovals
from remit.gateway.services import Limits, Services
from remit.gateway.takings import Takings
from remit.journal.journal import Journal
from remit.metrics.registry import Registry
from remit.models.prices import Price, Prices
from remit.models.registry import Endpoints, Models
from remit.policy.rules import Policy
from remit.settings import Settings
from remit.tools.catalog import Catalog
from remit.tools.meta import Retry
from remit.tools.migration import Migrations


def services_of(
    settings: Settings,
    journal: Journal,
    catalog: Catalog,
    policy: Policy,
    probes: Mapping[str, Probe],
    migrations: Migrations,
) -> Services:
    """One of each, over this journal and catalog. Raises SettingsError."""
    confirmations = Confirmations(journal, _proofs(settings))
    return Services(
        journal=journal,
        catalog=catalog,
        policy=policy,
        readiness=Readiness(journal.clock, probes, settings.readiness.required, reach=catalog.reach),
        confirmations=confirmations,
        remembered=RememberedApprovals(journal, confirmations, count=settings.policy.remembered),
        limits=_limits(settings),
        takings=Takings(journal),
        allowance=Allowance(journal, _day_limits(settings)),
        models=_models(settings, journal.clock),
        default_model=settings.models.default,
        model_retry=_model_retry(settings),
        migrations=migrations,
        mismatch=settings.jobs.mismatch,
        prices=Prices(_prices(settings)),
        metrics=_metrics(journal),
    )


def _metrics(journal: Journal) -> Registry:
    """The metrics of this process: first how long commits take, and what waits to be written."""
    metrics = Registry()
    commits = metrics.histogram("journal_commit_seconds", "Seconds that an awaited commit took.")
    journal.took = commits.taker()
    metrics.gauge("journal_backlog_bytes", "Bytes submitted to the journal and not yet written.", journal.backlog)
    return metrics


def _proofs(settings: Settings) -> Proofs:
    signers = settings.confirm.allowed_signers
    return Proofs(settings.confirm.proof, Path(signers) if signers else None, own=settings.confirm.own)


def _models(settings: Settings, clock: Clock) -> Models:
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


def _model_retry(settings: Settings) -> Retry:
    chosen = settings.models
    longest = max(chosen.longest_pause_seconds * 1_000, chosen.first_pause_ms)
    return Retry(attempts=chosen.attempts, first_delay_ms=chosen.first_pause_ms, max_delay_ms=longest)


def _day_limits(settings: Settings) -> DayLimits:
    """Limits in force; 0 is none."""
    return DayLimits(tokens=settings.models.day_tokens or None, cost=settings.models.day_cents / 100 or None)


def _prices(settings: Settings) -> dict[str, Price]:
    """Prices of your own, by model. Raises SettingsError."""
    found: dict[str, Price] = {}
    for table in settings.models.prices:
        given = {name: value for name, value in table.items() if name != "model"}
        try:
            found[msgspec.convert(table.get("model"), str)] = msgspec.convert(given, Price, strict=False)
        except msgspec.ValidationError as error:
            why = f"models.prices: {error}"
            raise SettingsError(why, remedy="docs/models.md shows the keys of a price.") from error
    return found


def _limits(settings: Settings) -> Limits:
    return Limits(
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
