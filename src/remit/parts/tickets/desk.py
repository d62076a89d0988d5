"""Everything that tickets need of one process, made once by wiring.

Counts where steps still stand: the older place goes away on a date (contract: tickets, "Ticket").

A TOOL ticket is counted as it is leased: a runner reads its steps then, in this process or behind a server.

The schema gate at a ticket's boundaries: created, completed, derived (contract: tickets, "Gates").

From outside (`ticket_create`, `ticket_complete`) the configured mode decides. What Remit derives itself passes the gate
in strict mode always. A document without the least that a ticket needs is refused in every mode.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.gateway.schema_gate import Boundary, Checks, Misfit, Mode, SchemaGate
from remit.parts.tickets.history import Derivation
from remit.parts.tickets.report import ToolVerdict
from remit.parts.tickets.schemas import CREATE, OUTPUTS
from remit.parts.tickets.steps import found_in, steps_of
from remit.parts.tickets.store import TicketStore
from remit.parts.tickets.ticket import KINDS, NewTicket
from remit.tools.explain import SchemaProblem
from remit.tools.schema import compile_schema

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.journal.journal import Journal
    from remit.metrics import Registry
    from remit.parts.tickets.ticket import Kind, Ticket
    from remit.randomness import RandomSource


class DeskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say about tickets."""

    schema_gate: Mode = "strict"
    no_mcp: bool = False
    derivation: Derivation = Derivation()
    cutover_until_ms: int | None = None
    max_evidence: int = 50
    """Pieces of evidence in a report."""


class TicketDesk:
    """The store, the schema gate in front of it, and the counters of the older place of steps."""

    def __init__(self, journal: Journal, metrics: Registry, chance: RandomSource, settings: DeskSettings) -> None:
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
        """Return what a report says about the settings it was made under (`mode_snapshot`)."""
        return {
            "schema_gate_mode": self.settings.schema_gate,
            "no_mcp": self.settings.no_mcp,
            "reply_derivation": self.settings.derivation.replies,
        }


_MILLI: Final = 1_000
_log: Final = logging.getLogger("remit.tickets")


class Cutover:
    """Counts the places of steps."""

    def __init__(self, metrics: Registry, clock: Clock, cutover_until_ms: int | None) -> None:
        self._clock = clock
        self._until_ms = cutover_until_ms
        self._missing = metrics.counter("canonical_missing", "Tickets whose tool_input holds no tool_steps.")
        self._legacy = metrics.counter("legacy_read", "Tickets whose steps were read from the older place.")
        self._violation = metrics.counter("cutover_violation", "Reads of the older place after CUTOVER_UNTIL_MS.")

    def leased(self, ticket: Ticket) -> None:
        """Count a ticket, if it has steps to read."""
        if ticket.type != "TOOL":
            return
        steps = found_in(ticket.metadata.tool_input, ticket.tool_steps)
        if steps.canonical_missing:
            self._missing.add()
        if steps.legacy:
            self._legacy.add()
            if self._until_ms is not None and self._clock.now() >= self._until_ms * _MILLI:
                self._violation.add()
                _log.warning("%s: its steps are in the older place, after CUTOVER_UNTIL_MS", ticket.id)


_REMEDY: Final = "See docs/tickets.md for the fields of a ticket."


class Intake:
    """Checks what tickets are made of."""

    def __init__(self, mode: Mode, metrics: Registry) -> None:
        closed = mode != "off"
        self._ingress = SchemaGate(mode, metrics)
        self._internal = SchemaGate("strict", metrics)
        self._create = compile_schema(CREATE, closed=closed)
        self._derive = compile_schema(CREATE, closed=True)
        self._outputs: dict[str, Checks] = {
            kind: _Outputs(compile_schema(schema, closed=closed)) for kind, schema in OUTPUTS.items()
        }

    def new(self, document: Any) -> tuple[NewTicket, int]:
        """A ticket from a request's JSON, and how many warnings it got. Raise UsageError."""
        kind = document.get("type") if isinstance(document, dict) else None
        known = kind if kind in KINDS else "unknown"
        misfit = self._ingress.check(Boundary("ticket_create", "ingress", known), self._create, document, "new")
        if misfit is not None and misfit.rejected:
            raise _refusal(misfit, "/tool_input/tool_steps/", document, "tool_input", "tool_steps")
        try:
            return msgspec.convert(document, NewTicket), _count(misfit)
        except msgspec.ValidationError as error:
            raise UsageError(f"the ticket: {error}", code=Code.SCHEMA_VALIDATION_FAILED, remedy=_REMEDY) from error

    def outputs(self, kind: Kind, outputs: Any, ticket: str) -> int:
        """Check what a ticket is completed with; return how many warnings it got. Raise UsageError."""
        boundary = Boundary("ticket_complete", "ingress", kind)
        misfit = self._ingress.check(boundary, self._outputs[kind], outputs, ticket)
        if misfit is not None and misfit.rejected:
            raise _refusal(misfit, "/tool_steps/", outputs, "tool_steps")
        return _count(misfit)

    def derived(self, new: NewTicket) -> str:
        """Return what is wrong with a ticket that Remit derives; empty: nothing. Never raises."""
        document = {name: value for name, value in msgspec.to_builtins(new).items() if value not in (None, "")}
        misfit = self._internal.check(Boundary("ticket_derive", "internal", new.type), self._derive, document, "new")
        return misfit.text if misfit is not None else ""


class _Outputs:
    """The schema of a ticket's outputs; a verdict of an unknown form has a code of its own."""

    def __init__(self, schema: Checks) -> None:
        self._schema = schema

    def problems(self, value: Any) -> Sequence[SchemaProblem]:
        problems = [each for each in self._schema.problems(value) if not each.path.startswith("/tool_verdict")]
        verdict = value.get("tool_verdict") if isinstance(value, dict) else None
        if verdict is not None and ToolVerdict.read(verdict) is None:
            problems.append(SchemaProblem(Code.tool_verdict_invalid, "/tool_verdict", "is not a verdict"))
        return problems


def _refusal(misfit: Misfit, place: str, document: Any, *way: str) -> UsageError:
    """The error of a refused document: a step's own, if steps at `place` are all that does not fit."""
    if all(each.path.startswith(place) for each in misfit.problems):
        steps = document
        for name in way:
            steps = steps[name]
        try:
            steps_of({"tool_steps": steps})
        except UsageError as error:
            return error
    return UsageError(misfit.text, code=Code.SCHEMA_VALIDATION_FAILED, remedy=_REMEDY)


def _count(misfit: Misfit | None) -> int:
    return len(misfit.problems) if misfit is not None else 0
