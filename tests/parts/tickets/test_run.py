"""Steps of runs that broke off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from remit.client import RemoteRemit
from remit.journal import kinds as k
from remit.journal.event import Event
from remit.parts.tickets.report import without_moments
from remit.parts.tickets.run import TicketRun
from remit.parts.tickets.steps import ToolStep, normalised, written
from remit.service.service import Service
from remit_testing.execution import EXECUTION_CHECKS, place, step
from remit_testing.service.world import Check, Reach
from tests.client.conftest import serving


def events(*payloads: k.Payload) -> list[Event]:
    return [Event("job/j", seq, one.KIND, seq, k.encode(one), b"") for seq, one in enumerate(payloads, 1)]


def test_a_step_that_a_run_did_not_get_to_is_blocked_with_run_timeout() -> None:
    history = TicketRun(events(k.JobCancelled(by="ann", reason="enough")))
    report = history.report(1, ToolStep(tool_name="a"))
    assert history.over
    assert (report.status, report.code, report.side_effect) == ("blocked", "RUN_TIMEOUT", "unknown")


pytestmark = pytest.mark.slow


@asynccontextmanager
async def path_z(service: Service) -> AsyncIterator[Service]:
    yield service


@asynccontextmanager
async def path_y(service: Service) -> AsyncIterator[Service]:
    async with serving(service) as url, RemoteRemit(url, "") as remit:
        yield remit.service


@pytest.mark.parametrize("reach", [path_z, path_y], ids=["in-process", "over-http"])
@pytest.mark.parametrize("check", EXECUTION_CHECKS, ids=lambda check: check.__name__)
async def test_a_ticket_is_executed(reach: Reach, check: Check) -> None:
    await check(reach)


@pytest.mark.parametrize("no_mcp", [False, True])
async def test_both_paths_give_the_same_report_but_for_times_and_identifiers(no_mcp: bool) -> None:
    steps = (step("desk_note", text="a"), step("desk_break"), step("github", operation="list"), step("desk_look"))
    reports: list[Any] = []
    for reach in (path_z, path_y):
        async with place(reach, **{"tools.no_mcp": no_mcp}) as one:
            reports.append(without_moments(await one.run(*steps)))
    assert reports[0] == reports[1]


@pytest.mark.parametrize(
    "document",
    [
        {"tool_name": "desk_look"},
        {"tool_name": "desk_look", "args": {"at": "x"}, "budget": {"max_steps": 1, "max_wall_ms": 5}, "save_as": "y"},
        {"server": "desk_look", "tool": "look", "args": {"at": "x"}},
    ],
)
def test_a_step_comes_over_the_wire_as_it_was(document: dict[str, Any]) -> None:
    sent: ToolStep = normalised(document)
    assert normalised(written(sent)) == sent
