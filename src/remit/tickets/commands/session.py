"""What the `remit tickets` commands share: their options, a session with the service, and how a ticket is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from remit.cli.context import State

if TYPE_CHECKING:
    from remit.journal.leases import LeaseProof
    from remit.tickets.ticket import Ticket
    from remit.tickets.tickets import Tickets

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

KINDS: Final = click.Choice(["TRIAGE", "TOOL", "REPLY"], case_sensitive=False)
STATES: Final = click.Choice(["pending", "running", "blocked", "failed", "done"])
LEASE: Final = click.IntRange(1, 86_400)


def proof_options(command: F) -> F:
    """The options that prove a lease."""
    owner = click.option("--owner", metavar="NAME", help="Who holds the lease.")
    token = click.option("--token", metavar="TOKEN", help="The lease's token, as `remit tickets lease` printed it.")
    return owner(token(command))


def proof_of(owner: str | None, token: str | None) -> LeaseProof | None:
    """The proof of a lease, if both parts were given. Raise UsageError for one alone."""
    from remit.journal.leases import LeaseProof

    if (owner is None) != (token is None):
        raise click.UsageError("A lease is proved by --owner and --token together.")
    return LeaseProof(owner=owner, token=token) if owner is not None and token is not None else None


def session(state: State, use: Callable[[Tickets], Awaitable[T]], *, creates: bool = False, writes: bool = True) -> T:
    """Open the journal or the server, use its tickets, close it."""
    return state.ask(lambda remit: use(remit.service.tickets), code="unused", writes=writes, creates=creates)


def show_ticket(state: State, ticket: Ticket, *, whole: bool = False) -> None:
    """Print a ticket: as JSON, as a few lines, or with everything it holds."""
    if state.as_json:
        state.output.json(ticket)
        return
    from remit.cli.tables import fields

    out, meta = state.output.out, ticket.metadata
    out.line(f"{ticket.id}  {ticket.type}  {out.style(ticket.status, ticket.status)}")
    if not whole:
        return
    stopped = meta.block or meta.failure
    fields(
        out,
        (
            ("created", meta.created_at),
            ("updated", meta.updated_at),
            ("thread", _of(ticket.event, "thread_id")),
            ("actor", _of(ticket.event, "actor")),
            ("held by", f"{meta.lease_owner} until {meta.lease_expires}" if meta.lease_owner else ""),
            ("retries", str(meta.retry_count) if meta.retry_count else ""),
            ("stopped by", f"{stopped.code} ({stopped.source}): {stopped.reason}" if stopped else ""),
            ("parent", meta.parent_ticket_id),
            ("derived", f"{meta.derived_ticket_id} {meta.derive_reason}".strip()),
        ),
    )
    _json(state, "message", _of(ticket.event, "content"))
    _json(state, "input", meta.tool_input)
    _json(state, "outputs", meta.final_outputs)


def _of(event: Any, field: str) -> str:
    return str(event.get(field, "")) if isinstance(event, dict) else ""


def _json(state: State, title: str, value: Any) -> None:
    if value in (None, ""):
        return
    from remit.cli.text import clean

    out = state.output.out
    out.line(f"  {out.style(title, 'dim')}")
    text = value if isinstance(value, str) else _pretty(value)
    for row in text.splitlines():
        out.line("    " + clean(row))


def _pretty(value: Any) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
