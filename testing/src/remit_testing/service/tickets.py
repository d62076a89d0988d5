"""Checks on tickets."""

from __future__ import annotations

from typing import Any, Final

from remit.codes import Code
from remit.errors import NotFoundError, StateError, UsageError
from remit.journal.leases import LeaseProof
from remit.parts.tickets.ticket import Kind, Ticket
from remit.parts.tickets.tickets import tickets_of
from remit_testing.service.world import Check, Reach, World, refused, world
from remit_testing.suite import checks_in

_EVENT: Final = {"type": "message", "thread_id": "t1", "content": "hello"}


async def _new(place: World, kind: Kind = "TRIAGE", **more: Any) -> Ticket:
    return await tickets_of(place.service).create({"type": kind, "event": _EVENT, **more})


async def check_a_ticket_is_created_and_listed(reach: Reach) -> None:
    """It comes back as it was created, alone and in pages; a document that is not a ticket is refused."""
    async with world(reach) as place:
        first, second = await _new(place), await _new(place, "REPLY")
        assert first.event == _EVENT
        assert await tickets_of(place.service).get(first.id) == first == await tickets_of(place.local).get(first.id)
        assert await tickets_of(place.service).page() == [second, first]
        assert await tickets_of(place.service).page(kind="TRIAGE", states=("pending", "done"), thread="t1") == [first]
        assert await tickets_of(place.service).page(before=second.id, limit=1) == [first]
        assert await tickets_of(place.service).page(thread="t2") == []
        with refused(Code.not_found, NotFoundError):
            await tickets_of(place.service).get("tkt_none")
        for wrong in ({"type": "ODD"}, ["no", "ticket"]):
            with refused(Code.SCHEMA_VALIDATION_FAILED, UsageError):
                await tickets_of(place.service).create(wrong)


async def check_a_lease_is_proved_renewed_and_released(reach: Reach) -> None:
    """One holder at a time; a proof that is not the lease's is refused."""
    async with world(reach) as place:
        ticket = await _new(place)
        (leased,) = await tickets_of(place.service).lease("TRIAGE", owner="me", limit=1, lease_sec=60)
        assert leased.ticket.id == ticket.id
        assert await tickets_of(place.service).lease("TRIAGE", owner="you", limit=1, lease_sec=60) == []
        with refused(Code.lease_conflict, StateError):
            await tickets_of(place.service).lease_by_id(ticket.id, owner="you", lease_sec=60)
        proof = LeaseProof(owner="me", token=leased.lease_token)
        with refused(Code.lease_owner_mismatch, StateError):
            await tickets_of(place.service).renew(ticket.id, LeaseProof(owner="you", token=leased.lease_token), 60)
        assert await tickets_of(place.service).renew(ticket.id, proof, 600) > leased.lease_expires
        assert (await tickets_of(place.service).release(ticket.id, proof, "no time")).status == "pending"
        again = await tickets_of(place.service).lease_by_id(ticket.id, owner="you", lease_sec=60)
        assert again.lease_owner == "you"


async def check_a_ticket_is_filled_once_and_what_follows_is_derived(reach: Reach) -> None:
    """A triage that asks for tools makes a TOOL ticket; filling again changes nothing."""
    async with world(reach) as place:
        ticket = await _new(place)
        leased = await tickets_of(place.service).lease_by_id(ticket.id, owner="me", lease_sec=60)
        proof = LeaseProof(owner="me", token=leased.lease_token)
        steps = [{"tool_name": "desk_look", "args": {"at": "x"}}]
        filled = await tickets_of(place.service).fill(ticket.id, {"tool_steps": steps}, proof=proof)
        assert filled.ticket.status == "done"
        assert filled.derived is not None
        (tool,) = await tickets_of(place.service).page(kind="TOOL")
        assert (tool.id, tool.metadata.parent_ticket_id) == (filled.derived.ticket, ticket.id)
        again = await tickets_of(place.service).fill(ticket.id, {}, proof=proof)
        assert again.ticket == await tickets_of(place.local).get(ticket.id)
        assert again.ticket.metadata.final_outputs == {"tool_steps": steps}


async def check_who_may_fill_without_a_lease_is_checked(reach: Reach) -> None:
    """A pending ticket is filled directly only by those who may."""
    async with world(reach) as place:
        ticket = await _new(place)
        with refused(Code.direct_fill_missing_by, StateError):
            await tickets_of(place.service).fill(ticket.id, {})
        with refused(Code.direct_fill_not_allowed, StateError):
            await tickets_of(place.service).fill(ticket.id, {}, by="somebody")
        assert (await tickets_of(place.service).fill(ticket.id, {"triage": "x"}, by="manual")).ticket.status == "done"


async def check_a_ticket_fails_or_is_blocked_and_is_retried(reach: Reach) -> None:
    """Why it stopped is kept; retrying makes it pending again."""
    async with world(reach) as place:
        ticket = await _new(place)
        blocked = await tickets_of(place.service).block(ticket.id, code="X", reason="why", source="me")
        assert blocked.metadata.block is not None
        assert (blocked.status, blocked.metadata.block.reason) == ("blocked", "why")
        assert (await tickets_of(place.service).retry(ticket.id)).metadata.retry_count == 1
        leased = await tickets_of(place.service).lease_by_id(ticket.id, owner="me", lease_sec=60)
        proof = LeaseProof(owner="me", token=leased.lease_token)
        failed = await tickets_of(place.service).fail(ticket.id, proof, code="Y", reason="no")
        assert (failed.status, failed.metadata.retry_count) == ("failed", 1)
        assert await tickets_of(place.service).report(ticket.id) is None


TICKET_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
