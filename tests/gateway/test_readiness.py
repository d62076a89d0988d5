"""Which dependencies are ready (contract: tickets, "Gates")."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from remit.gateway.readiness import DependencyState, Readiness, named
from remit_testing.clock import ManualClock
from tests.gateway.world import state

UP = state(ready=True)
DOWN = state(ready=False, detail="no socket")


def readiness(required: Any = None, optional: Any = None) -> Readiness:
    required = required or {}
    return Readiness(ManualClock(), {**required, **(optional or {})}, required, timeout_s=0.01)


async def raising() -> DependencyState:
    raise OSError("token=hunter2hunter2 refused")


async def hanging() -> DependencyState:
    await asyncio.Event().wait()
    return DependencyState(ready=True)


async def test_a_snapshot_as_json_has_every_key() -> None:
    snapshot = msgspec.json.decode(msgspec.json.encode(await readiness({"mcp": UP}).snapshot()))
    assert snapshot["required"] == {"mcp": {"ready": True, "code": None, "detail": ""}}


async def test_a_snapshot_tells_of_every_dependency() -> None:
    snapshot = await readiness({"mcp": UP}, {"web": UP}).snapshot()
    assert not snapshot.degraded
    assert snapshot.required == {"mcp": DependencyState(ready=True)}
    assert snapshot.optional == {"web": DependencyState(ready=True)}
    assert (snapshot.missing_required, snapshot.as_of) == ([], "2026-01-01T00:00:00.000Z")


async def test_anything_down_degrades_and_only_the_required_is_missing() -> None:
    snapshot = await readiness({"mcp": DOWN, "disk": UP}, {"web": DOWN}).snapshot()
    assert (snapshot.degraded, snapshot.missing_required) == (True, ["mcp"])
    assert (await readiness({"mcp": UP}, {"web": DOWN}).snapshot()).degraded


async def test_the_body_of_a_503() -> None:
    snapshot = await readiness({"mcp": DOWN}).snapshot()
    assert snapshot.refusal() == {
        "error_code": "MCP_REQUIRED_UNAVAILABLE",
        "missing_required": ["mcp"],
        "degraded": True,
        "as_of": "2026-01-01T00:00:00.000Z",
    }


async def test_of_the_keys_that_are_asked_for_those_not_ready_are_missing() -> None:
    found = readiness({"mcp": DOWN}, {"web": UP, "gpu": DOWN})
    assert list(await found.missing(["web", "gpu", "mcp", "gpu"])) == ["gpu", "mcp"]
    assert await found.missing([]) == {}


async def test_a_key_nobody_knows_is_missing() -> None:
    assert (await readiness().missing(["gpu"]))["gpu"].code == "DEP_UNKNOWN"


async def test_an_unknown_tool_lacks_every_required_dependency_that_is_down() -> None:
    assert list(await readiness({"mcp": DOWN, "disk": UP}, {"web": DOWN}).missing_for("web.search")) == ["mcp"]


@pytest.mark.parametrize("name", ["mcp.files.read", "mcp__files__read", "files"])
async def test_an_unknown_tool_of_a_server_lacks_that_server_and_no_other(name: str) -> None:
    found = readiness({}, {"mcp": DOWN, "mcp.files": DOWN, "mcp.notes": DOWN})
    assert list(await found.missing_for(name)) == ["mcp.files"]
    assert await readiness({}, {"mcp.files": UP}).missing_for(name) == {}


async def test_what_is_required_and_has_no_probe_is_never_ready() -> None:
    snapshot = await Readiness(ManualClock(), {}, ["mcp.flies"]).snapshot()
    assert snapshot.degraded
    assert snapshot.required["mcp.flies"].code == "DEP_UNKNOWN"


async def test_a_probe_that_fails_is_a_dependency_that_is_down() -> None:
    state_ = (await readiness({"mcp": raising}).missing(["mcp"]))["mcp"]
    assert (state_.ready, state_.code, state_.detail) == (False, "DEP_UNAVAILABLE", "token=******** refused")


async def test_a_probe_that_does_not_answer_is_a_dependency_that_is_down() -> None:
    state_ = (await readiness({"mcp": hanging}).missing(["mcp"]))["mcp"]
    assert (state_.ready, state_.code, state_.detail) == (False, "DEP_TIMEOUT", "no answer for 0.01 s")


async def test_probes_do_not_wait_for_each_other() -> None:
    met = asyncio.Barrier(2)

    async def meeting() -> DependencyState:
        await met.wait()
        return DependencyState(ready=True)

    assert not (await readiness({"a": meeting}, {"b": meeting}).snapshot()).degraded


async def test_what_is_missing_in_words() -> None:
    assert named(await readiness({"mcp": DOWN}).missing(["mcp", "gpu"])) == "mcp (no socket), gpu (DEP_UNKNOWN)"
