"""The wire to one client whose input ends while its server starts."""

from __future__ import annotations

import pytest

from remit.mcp_server.stdio import ClientGoneError, LineWire
from tests.jsonrpc.pair import line, turns


async def start(wire: LineWire, *, answers: bool) -> str:
    """Start as a server does that answers the handshake, or says nothing, once the client's input has ended."""
    if answers:
        wire.expect()
    await turns()
    return "up"


def ended(*requests: bytes) -> LineWire:
    """A wire whose client asked this, and waits for nothing."""
    wire = LineWire()
    for request in requests:
        wire.data_received(request + b"\n")
    wire.end_input()
    return wire


async def test_who_asked_something_waits_for_a_server_that_has_begun_to_answer() -> None:
    wire = ended(line(id=1, method="tools/list"))
    assert await wire.while_there(start(wire, answers=True)) == "up"
    assert not wire.dispatcher.why_closed
    wire.expect()  # a new connection while it is served changes nothing
    wire.wait(0.0)
    assert await wire.dispatcher.closed()


@pytest.mark.parametrize(("requests", "answers"), [([line(id=1, method="tools/list")], False), ([], True)])
async def test_no_one_waits_for_a_server_that_says_nothing_or_without_having_asked(
    requests: list[bytes], answers: bool
) -> None:
    wire = ended(*requests)
    with pytest.raises(ClientGoneError):
        await wire.while_there(start(wire, answers=answers))
