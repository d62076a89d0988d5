"""The wire to one client whose input ends while its server starts."""

from __future__ import annotations

import pytest

from remit.mcp_server.stdio import STARTING_S, ClientGoneError, LineWire
from tests.jsonrpc.pair import line, turns


async def start() -> str:
    """Start as a server does that takes a while, once the client's input has ended."""
    await turns()
    return "up"


def ended(*lines: bytes) -> LineWire:
    """A wire whose client said this, and says nothing more."""
    wire = LineWire()
    wire.wait(STARTING_S)
    for each in lines:
        wire.data_received(each + b"\n")
    wire.end_input()
    return wire


async def test_who_asked_something_waits_for_the_server() -> None:
    wire = ended(line(id=1, method="tools/list"))
    assert await wire.while_there(start()) == "up"
    assert not wire.dispatcher.why_closed
    wire.wait(0.0)  # what is asked is not answered in time from now on
    assert await wire.dispatcher.closed()


@pytest.mark.parametrize("lines", [[], [b""], [b"no JSON"], [line(method="notifications/initialized")]])
async def test_who_asked_nothing_does_not_wait(lines: list[bytes]) -> None:
    wire = ended(*lines)
    with pytest.raises(ClientGoneError):
        await wire.while_there(start())
