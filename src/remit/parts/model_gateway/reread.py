"""A recorded run, read by today's code: its requests, its answers, and which answer each request would be given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from remit.capability import Reread
from remit.errors import NotFoundError
from remit.models.faults import ModelFault
from remit.models.reply import unwatched
from remit.parts.model_gateway.answers import Answers, Recorded, recording_of
from remit.parts.model_gateway.exchange import ExchangeAnswer, wanted_of
from remit.parts.model_gateway.request_reader import Reader, UnreadableError
from remit.parts.model_gateway.wires import FAMILIES, Request, WireRoute, route_of

if TYPE_CHECKING:
    from remit.journal.journal import Journal


async def reread(journal: Journal, job: str) -> list[Reread]:
    """Return what is read otherwise today of a recorded run; nothing of any other job."""
    try:
        recording = await recording_of(journal, job)
    except NotFoundError:
        return []
    answers, reader, differences = Answers(recording), Reader(), list[Reread]()
    for call in recording.calls:
        step, route = call.question.step, route_recorded(call)
        if route is None:
            differences.append(Reread(step, "wire", call.question.wire, ""))
            continue
        differences += _requests(call, route, reader)
        differences += _answers(call, route)
        taken = answers.take(request_recorded(call, route), main=call.question.main)
        if taken is not call:
            differences.append(Reread(step, "answer that it is given", step, taken.question.step if taken else ""))
    return differences


def route_recorded(call: Recorded) -> WireRoute | None:
    """Return the route of a recorded request; None: no wire of today is the one that it came on."""
    routes = (route_of(call.question.method, f"{family.prefix}{call.question.route}") for family in FAMILIES)
    named = (route for route in routes if route is not None)
    return next(
        (route for route in named if (route.row.name if route.row is not None else "") == call.question.wire), None
    )


def request_recorded(call: Recorded, route: WireRoute) -> Request:
    """Return a recorded request as it came, without its headers."""
    return Request(call.question.method, route, call.question.query, {}, call.body)


def _requests(call: Recorded, route: WireRoute, reader: Reader) -> Iterator[Reread]:
    recorded = call.question
    try:
        reading = reader.read(route, call.body) if route.kind == "model" else None
    except UnreadableError:
        reading = None
    main = reading is not None and bool(reading.tools.specs)
    results = reading.results if reading is not None else ()
    if main != recorded.main:
        yield Reread(recorded.step, "tools offered", str(recorded.main), str(main))
    if results != recorded.results:
        yield Reread(recorded.step, "results", ", ".join(recorded.results), ", ".join(results))


def _answers(call: Recorded, route: WireRoute) -> Iterator[Reread]:
    answered = call.answered
    if answered is None or answered.end != "complete" or not call.answer or route.row is None:
        return
    answer = ExchangeAnswer(route, "", "", 0, unwatched)
    streams = answered.headers.get("content-type", "").startswith("text/event-stream")
    answer.begin(streams, answered.headers.get("content-encoding", ""))
    answer.feed(call.answer)
    try:
        wanted = wanted_of(answer.reply())
    except ModelFault as fault:
        yield Reread(answered.step, "answer", "complete", fault.reason)
        return
    if wanted != answered.wanted:
        yield Reread(answered.step, "calls wanted", ", ".join(answered.wanted), ", ".join(wanted))
