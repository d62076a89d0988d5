"""TRIAGE → TOOL and TOOL → REPLY: what follows once a ticket is done (contract: tickets, "TOOL → REPLY").

A derived ticket has an identifier computed from its parent, so it exists once however often this runs and wherever it
was broken off. Deriving never undoes the completion: what goes wrong is recorded on the parent as DERIVE_FAILED.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

from remit.codes import Code
from remit.errors import AppendConflictError, NotFoundError, RemitError
from remit.parts.tickets.history import Derivation, Derived
from remit.parts.tickets.report import ToolVerdict
from remit.parts.tickets.ticket import Kind, NewTicket, Ticket, derived_id
from remit.redact import line


class TicketPort(Protocol):
    """The port that deriving needs of the ticket store."""

    @property
    def derivation(self) -> Derivation:
        """Return which tickets are derived."""
        ...

    def problems(self, new: NewTicket) -> str:
        """Return what is wrong with a ticket that is to be derived, by the strict schema gate; empty: nothing."""
        ...

    async def get(self, ticket: str) -> Ticket:
        """A ticket. Raise NotFoundError."""
        ...

    async def create(self, new: NewTicket, *, principal: str = "", identifier: str = "") -> Ticket:
        """Create a ticket. Raise AppendConflictError if one with this identifier exists."""
        ...

    async def derived(self, ticket: str, reason: str, *, child: str = "", message: str = "") -> Ticket:
        """Record what deriving ended with."""
        ...


async def maybe_derive_reply_from_tool_on_fill(
    updated_tool: Ticket, outputs: Any, store: TicketPort, logger: logging.Logger
) -> Derived:
    """Derive the REPLY of a TOOL ticket that was just completed; the only way to one. Never raises RemitError."""
    if updated_tool.type != "TOOL":
        return Derived(reason=Code.not_tool.name)
    try:
        refusal = _refusal(updated_tool, outputs, store.derivation)
        if refusal is None:
            return await _reply(updated_tool, outputs, store)
        return await _refused(updated_tool, refusal, store)
    except RemitError as error:
        return await _failed(updated_tool, store, logger, error)


async def derive_tool_from_triage_on_fill(
    updated_triage: Ticket, outputs: Any, store: TicketPort, logger: logging.Logger
) -> Derived | None:
    """Derive the TOOL ticket that a completed TRIAGE asks for. Return None if it asks for none."""
    if updated_triage.type != "TRIAGE" or not isinstance(outputs, dict) or not outputs.get("tool_steps"):
        return None
    tool_input = {
        "event": updated_triage.event,
        "triage": outputs.get("triage"),
        "tool_steps": outputs["tool_steps"],
        **({"tool_policy": outputs["tool_policy"]} if outputs.get("tool_policy") else {}),
    }
    new = NewTicket(
        type="TOOL",
        event=updated_triage.event,
        tool_input=tool_input,
        parent_ticket_id=updated_triage.id,
        triage_ticket_id=updated_triage.id,
    )
    try:
        return await _create(updated_triage, "TOOL", new, store)
    except RemitError as error:
        return await _failed(updated_triage, store, logger, error)


def _refusal(ticket: Ticket, outputs: Any, derivation: Derivation) -> Code | None:
    """Return why no reply is derived, before anything is looked up."""
    if ticket.metadata.kind != "TOOL":
        return Code.gate_kind_not_tool
    if not derivation.replies:
        return Code.gate_reply_derivation_disabled
    if derivation.tool_only:
        return Code.gate_tool_only_mode
    verdict = ToolVerdict.read(outputs.get("tool_verdict")) if isinstance(outputs, dict) else None
    if verdict is None:
        return Code.missing_tool_verdict
    if verdict.status != "PROCEED":
        return Code.gate_tool_verdict_not_proceed
    return None if ticket.metadata.parent_ticket_id else Code.missing_parent_ticket_id


async def _reply(tool: Ticket, outputs: Any, store: TicketPort) -> Derived:
    try:
        triage = await store.get(tool.metadata.triage_ticket_id or tool.metadata.parent_ticket_id)
    except NotFoundError:
        return await _refused(tool, Code.missing_parent_triage_ticket, store)
    if triage.type != "TRIAGE":
        return await _refused(tool, Code.missing_parent_triage_ticket, store)
    tool_input = tool.metadata.tool_input if isinstance(tool.metadata.tool_input, dict) else {}
    new = NewTicket(
        type="REPLY",
        event=triage.event,
        tool_input={
            "event": triage.event,
            "triage": tool_input.get("triage"),
            "tool_context": outputs.get("tool_context") or {},
            "tool_verdict": outputs["tool_verdict"],
        },
        parent_ticket_id=tool.id,
        triage_ticket_id=triage.id,
    )
    return await _create(tool, "REPLY", new, store)


async def _refused(parent: Ticket, reason: Code, store: TicketPort) -> Derived:
    if parent.metadata.derive_reason != reason.name:
        await store.derived(parent.id, reason.name)
    return Derived(reason=reason.name)


async def _create(parent: Ticket, kind: Kind, new: NewTicket, store: TicketPort) -> Derived:
    """Create the child once, and join it to its parent."""
    child = derived_id(parent.id, kind)
    if parent.metadata.derived_ticket_id == child:
        return Derived(reason=Code.idempotent.name, ticket=child)
    problems = store.problems(new)
    if problems:
        await store.derived(parent.id, Code.schema_validation_failed.name, message=problems)
        return Derived(reason=Code.schema_validation_failed.name)
    reason = Code.created
    try:
        await store.create(new, identifier=child)
    except AppendConflictError:
        joined = (await store.get(parent.id)).metadata.derived_ticket_id == child
        reason = Code.idempotent if joined else Code.recovered_orphan
    if reason is not Code.idempotent:
        await store.derived(parent.id, reason.name, child=child)
    return Derived(reason=reason.name, ticket=child)


async def _failed(parent: Ticket, store: TicketPort, logger: logging.Logger, error: RemitError) -> Derived:
    logger.warning("derive_failed ticket=%s: %s", parent.id, line(str(error)))
    try:
        await store.derived(parent.id, Code.DERIVE_FAILED.name, message=str(error))
    except RemitError as again:  # the journal itself is away: the completion stands, and a later fill derives it
        logger.warning("derive_failed ticket=%s was not recorded: %s", parent.id, line(str(again)))
    return Derived(reason=Code.DERIVE_FAILED.name)
