"""`POST /events`: a message of a thread comes in and becomes a TRIAGE ticket (contract: tickets, "HTTP")."""

from __future__ import annotations

from typing import Any, Final

from remit.api.route import ApiRequest, Route
from remit.codes import Code
from remit.tickets.ticket import Ticket


async def take(asked: ApiRequest) -> Ticket:
    """Create a TRIAGE ticket from a message of a thread. In strict mode the message has to fit its schema."""
    document = {"type": "TRIAGE", "event": asked.body}
    return await asked.service.tickets.create(document, principal=asked.principal, identifier=asked.identifier("tkt"))


ROUTES: Final = (
    Route(
        method="POST",
        path="/events",
        name="events.take",
        scope="tickets",
        summary="Take a message; it becomes a TRIAGE ticket.",
        handler=take,
        body=dict[str, Any],
        answer=Ticket,
        status=201,
        starts=True,
        codes=(Code.SCHEMA_VALIDATION_FAILED,),
        example={"type": "message", "thread_id": "t1", "content": "Is the build green?", "actor": "ann"},
    ),
)
