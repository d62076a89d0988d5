"""The services that the stages work with."""

from __future__ import annotations

import msgspec

from remit.gateway.approvals import RememberedApprovals
from remit.gateway.call_limits import CallLimits
from remit.gateway.confirmations import Confirmations
from remit.gateway.model_request import Allowance
from remit.gateway.readiness import Readiness
from remit.gateway.schema_gate import SchemaGate
from remit.gateway.secrets import Secrets
from remit.gateway.takings import Takings
from remit.gateway.turnstiles import Turnstiles
from remit.journal.journal import Journal
from remit.metrics import Registry
from remit.models.fallback import Fallbacks
from remit.models.prices import Prices
from remit.models.prompt import Cache
from remit.models.registry import Models
from remit.models.tail import Tails
from remit.policy.rules import Policy
from remit.tools.catalog import Catalog
from remit.tools.migration import Migrations


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """One of each, made by wiring."""

    journal: Journal
    catalog: Catalog
    policy: Policy
    readiness: Readiness
    confirmations: Confirmations
    remembered: RememberedApprovals
    limits: CallLimits
    allowance: Allowance
    """The allowance of principals, to spend on models in a day."""
    takings: Takings
    """The parts taken of limits of rules."""
    turnstiles: Turnstiles | None = None
    """The limits of the settings; None: there are none."""
    models: Models | None = None
    """None: this process has no models."""
    default_model: str = ""
    cache: Cache | None = None
    """Whether providers are to keep prompts, where a question does not say it."""
    fallbacks: Fallbacks = msgspec.field(default_factory=Fallbacks)
    """The rules of what follows a question to a model that failed."""
    tails: Tails = msgspec.field(default_factory=Tails)
    """The words that models are saying, for anyone who watches."""
    migrations: Migrations = msgspec.field(default_factory=Migrations)
    """The migrations of recorded arguments to those of today's tools."""
    mismatch: str = "warn"
    """The meaning of other versions than recorded: `warn`, `fail` or `migrate`."""
    told_in: str = ""
    """The stream that says what the models of the sessions' clients were told; empty: that is not known."""
    secrets: Secrets = msgspec.field(default_factory=Secrets)
    """The secrets of tools."""
    prices: Prices = msgspec.field(default_factory=Prices)
    metrics: Registry = msgspec.field(default_factory=Registry)

    @property
    def schema_gate(self) -> SchemaGate:
        """The gate for values at any boundary; what every one of them counts is the same."""
        return SchemaGate(self.limits.schema_gate, self.metrics)
