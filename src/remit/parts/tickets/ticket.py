"""The ticket: its document, its states, and how one state leads to another (contract: tickets).

    pending ──lease──> running ──complete──> done
       │  ▲               ├──fail───> failed ──retry──> pending, or running if it is leased by its identifier
       │  └──release──────┤
       └──block──> blocked <┘        blocked ──retry──> pending

A ticket is a stream of the journal, `ticket/<id>`. Its head says who leases it; everything else is folded from events.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from remit.clock import isoformat
from remit.ids import encode, new_id
from remit.parts.tickets.report import ToolVerdict

Kind = Literal["TRIAGE", "TOOL", "REPLY"]
Status = Literal["pending", "running", "blocked", "failed", "done"]

STREAM_KIND: Final = "ticket"
"""The kind of ticket streams; their route is the ticket's kind."""
KINDS: Final[tuple[Kind, ...]] = ("TRIAGE", "TOOL", "REPLY")
PREFIX: Final = "tkt"


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Why a ticket is blocked."""

    code: str
    reason: str
    source: str
    """The source that blocked it, such as `gateway`, `runner` or a person's name."""


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a ticket says about itself."""

    created_at: str
    """RFC 3339, UTC, like every other time of a ticket."""
    updated_at: str
    kind: Kind
    assigned_to: str = ""
    lease_owner: str = ""
    lease_expires: str = ""
    retry_count: int = 0
    parent_ticket_id: str = ""
    triage_ticket_id: str = ""
    """The TRIAGE ticket that a TOOL or REPLY ticket goes back to."""
    tool_input: Any = None
    final_outputs: Any = None
    block: Block | None = None
    failure: Block | None = None
    derived_ticket_id: str = ""
    derive_reason: str = ""
    """The end of deriving the next ticket; empty: it was not tried."""


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """One ticket, as every face shows it. A lease token is never part of it."""

    id: str
    type: Kind
    status: Status
    event: Any
    """The message that it answers, as it came: {type, thread_id, content, actor, timestamp}."""
    metadata: Metadata
    tool_steps: Any = msgspec.UNSET
    """Steps of an older client (contract: tickets, "Ticket")."""

    @property
    def verdict(self) -> ToolVerdict | None:
        """The verdict among its outputs, if it has one that can be read."""
        outputs = self.metadata.final_outputs
        return ToolVerdict.read(outputs.get("tool_verdict")) if isinstance(outputs, dict) else None


class NewTicket(msgspec.Struct, frozen=True, kw_only=True):
    """What a ticket is created from."""

    type: Kind
    event: Any
    tool_input: Any = None
    tool_steps: Any = msgspec.UNSET
    parent_ticket_id: str = ""
    triage_ticket_id: str = ""
    assigned_to: str = ""
    priority: int = 0


class Leased(msgspec.Struct, frozen=True, kw_only=True):
    """A ticket and the lease its holder got; the only place where the token is shown."""

    ticket: Ticket
    lease_owner: str
    lease_token: str
    lease_expires: str


def new_ticket_id() -> str:
    """An identifier that sorts by the time of creation."""
    return new_id(PREFIX)


def derived_id(parent: str, kind: Kind) -> str:
    """The identifier of what is derived from a ticket: always the same, so that it exists once."""
    return f"{PREFIX}_{encode(int.from_bytes(sha256(f'{parent}/{kind}'.encode()).digest()[:16], 'big'))}"


def stream_of(ticket: str) -> str:
    """The stream of a ticket."""
    return f"{STREAM_KIND}/{ticket}"


def moment(micros: int | None) -> str:
    """A time as a ticket shows it; empty for None."""
    return isoformat(micros) if micros is not None else ""
