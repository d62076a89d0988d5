"""Readiness sees what providers know of themselves, and asks nothing of them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from remit.codes import Code
from remit.gateway.readiness import Readiness, probes_of, unavailable
from remit.tools.remote import Outage
from remit_testing.clock import ManualClock


class Server:
    """A provider that is up, or knows why not."""

    def __init__(self, name: str, outage: Outage | None = None, *, reached: bool = True) -> None:
        self.dependency = f"mcp.{name}"
        self.reached = reached
        self._outage = outage

    def outage(self) -> Outage | None:
        return self._outage


def readiness(*providers: object) -> Readiness:
    return Readiness(ManualClock(), probes_of(providers))


async def test_servers_that_are_up_are_ready_each_and_together() -> None:
    snapshot = await readiness(Server("a"), Server("b"), object()).snapshot()
    assert not snapshot.degraded
    assert list(snapshot.optional) == ["mcp", "mcp.a", "mcp.b"]


async def test_without_servers_there_is_nothing_to_depend_on() -> None:
    snapshot = await readiness(object()).snapshot()
    assert (snapshot.degraded, snapshot.optional) == (False, {})


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (Code.SpawnFailed, "DEP_INIT_FAILED"),
        (Code.Timeout, "DEP_TIMEOUT"),
        (Code.ConnectionError, "DEP_UNAVAILABLE"),
        (Code.ProviderClosed, "DEP_UNAVAILABLE"),
    ],
)
async def test_one_that_is_down_degrades_with_a_code_and_its_reason(cause: Code, code: str) -> None:
    snapshot = await readiness(Server("a"), Server("b", Outage(cause, "no such program"))).snapshot()
    assert snapshot.degraded
    assert snapshot.optional["mcp.a"].ready
    assert (snapshot.optional["mcp.b"].code, snapshot.optional["mcp.b"].detail) == (code, "no such program")
    assert (snapshot.optional["mcp"].code, snapshot.optional["mcp"].detail) == (code, "not ready: mcp.b")


async def test_one_that_was_never_reached_is_not_known_to_be_ready() -> None:
    never = Server("b", reached=False)
    snapshot = await readiness(Server("a"), never).snapshot()
    assert (snapshot.optional["mcp.b"].ready, snapshot.optional["mcp.b"].code) == (False, "DEP_UNKNOWN")
    assert (snapshot.optional["mcp"].ready, snapshot.optional["mcp"].code) == (False, "DEP_UNKNOWN")
    down = Server("c", Outage(Code.SpawnFailed, "no such program"), reached=False)
    assert (await readiness(never, down).snapshot()).optional["mcp"].code == "DEP_INIT_FAILED"


async def test_a_call_that_needs_one_that_was_never_reached_has_it_reached_first() -> None:
    server, asked = Server("b", reached=False), list[str]()

    async def reach(keys: Iterable[str]) -> None:
        asked.extend(keys)
        server.reached = True

    one = Readiness(ManualClock(), probes_of([server]), ["mcp.b"], reach=reach)
    assert await one.missing(["mcp.b"]) == {}
    assert asked == ["mcp.b"]
    server.reached = False
    await one.reach()
    assert (await one.snapshot()).missing_required == []


async def test_a_reason_is_shown_without_secrets() -> None:
    (state,) = (
        await readiness(Server("b", Outage(Code.SpawnFailed, "token=hunter2hunter2"))).missing(["mcp.b"])
    ).values()
    assert "hunter2" not in state.detail


async def test_what_is_switched_off_is_not_ready_under_every_key() -> None:
    snapshot = await Readiness(ManualClock(), unavailable(["mcp.a"], "switched off")).snapshot()
    assert {key: state.code for key, state in snapshot.optional.items()} == dict.fromkeys(
        ("mcp", "mcp.a"), "DEP_UNAVAILABLE"
    )
