"""Leases of tickets over HTTP (contract: tickets, "States")."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from remit.api.holding import held
from remit.api.route import ApiRequest, Route
from remit.codes import Code
from remit.tickets.leasing import LEASE_SEC, MAX_LEASE_SEC, MAX_LEASED
from remit.tickets.ticket import Kind, Leased, Proof, Ticket

_LONGEST_S: Final = 60
Seconds = Annotated[int, msgspec.Meta(ge=1, le=MAX_LEASE_SEC)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class FreeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Tickets of which kind, and how long to hold the answer until there is one."""

    type: Kind
    wait: Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_S)] = 0
    """Seconds to hold the answer until a ticket can be leased."""


class Free(msgspec.Struct, frozen=True):
    """Whether a ticket can be leased."""

    free: bool


class LeaseBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tickets to lease, and for whom."""

    kind: Kind
    owner: Name
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_LEASED)] = 1
    lease_sec: Seconds = LEASE_SEC


class LeaseOneBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For whom to lease the ticket."""

    owner: Name
    lease_sec: Seconds = LEASE_SEC


class ProofBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The proof of a lease, and why the ticket is returned."""

    lease_owner: Name
    lease_token: Name
    reason: str = ""


class RenewBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The proof of a lease, and how long it is to last from now on."""

    lease_owner: Name
    lease_token: Name
    lease_sec: Seconds = LEASE_SEC


class Renewed(msgspec.Struct, frozen=True):
    """When a lease ends now."""

    lease_expires: str


async def free(asked: ApiRequest) -> Free:
    """Say whether a ticket of a kind can be leased; with `wait`, once there is one. Nothing is leased."""
    query: FreeQuery = asked.query
    found = await asked.service.tickets.free(query.type)
    if not found and query.wait:
        found = bool(await held(asked, asked.service.tickets.free(query.type, wait_s=query.wait), query.wait))
    return Free(found)


async def lease(asked: ApiRequest) -> list[Leased]:
    """Lease the oldest tickets of a kind that are free. Each token is shown here and nowhere else."""
    body: LeaseBody = asked.body
    return await asked.service.tickets.lease(body.kind, owner=body.owner, limit=body.limit, lease_sec=body.lease_sec)


async def lease_one(asked: ApiRequest) -> Leased:
    """Lease one ticket."""
    body: LeaseOneBody = asked.body
    return await asked.service.tickets.lease_by_id(asked.path["ticket"], owner=body.owner, lease_sec=body.lease_sec)


async def renew(asked: ApiRequest) -> Renewed:
    """Prolong a lease."""
    body: RenewBody = asked.body
    proof = Proof(owner=body.lease_owner, token=body.lease_token)
    return Renewed(await asked.service.tickets.renew(asked.path["ticket"], proof, body.lease_sec))


async def release(asked: ApiRequest) -> Ticket:
    """Return a leased ticket."""
    body: ProofBody = asked.body
    proof = Proof(owner=body.lease_owner, token=body.lease_token)
    return await asked.service.tickets.release(asked.path["ticket"], proof, body.reason)


_ONE: Final = "/v1/tickets/{ticket}"
_HELD: Final = (Code.not_found, Code.lease_owner_mismatch, Code.lease_conflict)

ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/tickets/free",
        name="tickets.free",
        scope="work",
        summary="Wait for a ticket that can be leased.",
        handler=free,
        query=FreeQuery,
        answer=Free,
    ),
    Route(
        method="POST",
        path="/v1/tickets/lease",
        name="tickets.lease",
        scope="work",
        summary="Lease tickets of a kind.",
        handler=lease,
        body=LeaseBody,
        answer=list[Leased],
        codes=(Code.USAGE,),
        example={"kind": "TRIAGE", "owner": "triage-1"},
    ),
    Route(
        method="POST",
        path=f"{_ONE}/lease",
        name="tickets.lease_one",
        scope="work",
        summary="Lease one ticket.",
        handler=lease_one,
        body=LeaseOneBody,
        answer=Leased,
        codes=(Code.not_found, Code.lease_conflict, Code.USAGE),
        example={"owner": "triage-1"},
    ),
    Route(
        method="POST",
        path=f"{_ONE}/renew",
        name="tickets.renew",
        scope="work",
        summary="Prolong a lease.",
        handler=renew,
        body=RenewBody,
        answer=Renewed,
        codes=(*_HELD, Code.USAGE),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/release",
        name="tickets.release",
        scope="work",
        summary="Return a leased ticket.",
        handler=release,
        body=ProofBody,
        answer=Ticket,
        codes=_HELD,
    ),
)
