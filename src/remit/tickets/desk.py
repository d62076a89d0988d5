"""Everything that tickets need of one process, made once by wiring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from remit.codes import Code
from remit.gateway.schema_gate import Mode
from remit.tickets.cutover import Cutover
from remit.tickets.derivation import Derivation
from remit.tickets.intake import Intake
from remit.tickets.store import TicketStore

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.metrics.registry import Registry
    from remit.randomness import RandomSource


class DeskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say about tickets."""

    schema_gate: Mode = "strict"
    no_mcp: bool = False
    derivation: Derivation = Derivation()
    cutover_until_ms: int | None = None
    max_evidence: int = 50
    """Pieces of evidence in a report."""


class Desk:
    """The store, the schema gate in front of it, and the counters of the older place of steps."""

    def __init__(self, journal: Journal, metrics: Registry, chance: RandomSource, settings: DeskSettings) -> None:
        """Keep tickets in `journal` and count in `metrics`."""
        self.journal = journal
        self.settings = settings
        self.intake = Intake(settings.schema_gate, metrics)
        self.cutover = Cutover(metrics, journal.clock, settings.cutover_until_ms)
        guard = metrics.counter("ticket_store_guard_reject_total", "Refused writes on tickets.", "code", "action")

        def rejected(code: Code, action: str) -> None:
            guard.add(code.name, action)

        self.store = TicketStore(
            journal, chance, rejected=rejected, derivation=settings.derivation, problems=self.intake.derived
        )

    @property
    def mode(self) -> dict[str, Any]:
        """What a report says about the settings it was made under (`mode_snapshot`)."""
        return {
            "schema_gate_mode": self.settings.schema_gate,
            "no_mcp": self.settings.no_mcp,
            "reply_derivation": self.settings.derivation.replies,
        }
