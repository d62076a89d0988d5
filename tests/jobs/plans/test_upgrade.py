"""Recorded task graphs of other formats: older ones are upgraded, newer ones are left to a newer Remit."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from remit.codes import Code
from remit.errors import VersionError
from remit.ids import new_id
from remit.jobs.plans.plan import Upgrade, upgraded
from remit.jobs.state import stream_of
from remit.journal.event import HeadPatch
from remit.journal.kinds import JobCreated, PlanGenerated
from tests.opened import OpenRemit, until


def renamed(graph: dict[str, Any]) -> dict[str, Any]:
    return {("nodes" if name == "steps" else name): value for name, value in graph.items()}


def fails(_graph: dict[str, Any]) -> dict[str, Any]:
    raise LookupError("no steps")


UPGRADES: Final = {
    "taskgraph-v1": Upgrade("taskgraph-v2", renamed),
    "taskgraph-v2": Upgrade("taskgraph-v3", lambda graph: {**graph, "grown": True}),
    "taskgraph-v7": Upgrade("taskgraph-v8", fails),
    "round-1": Upgrade("round-2", dict),
    "round-2": Upgrade("round-1", dict),
}


def test_a_graph_goes_through_every_format_up_to_todays() -> None:
    given = {"version": "taskgraph-v1", "steps": [1]}
    made = upgraded(given, "taskgraph-v1", UPGRADES, "taskgraph-v3")
    assert made == {"version": "taskgraph-v3", "nodes": [1], "grown": True}
    assert given == {"version": "taskgraph-v1", "steps": [1]}


@pytest.mark.parametrize("graph", [{"version": "taskgraph-v1", "nodes": []}, {"nodes": []}, [], None])
def test_a_graph_of_todays_format_is_left_as_it_is(graph: object) -> None:
    assert upgraded(graph, "taskgraph-v1") is graph


@pytest.mark.parametrize(
    ("recorded", "today", "code"),
    [
        ("taskgraph-v2", "taskgraph-v1", Code.PLAN_NEWER),
        ("taskgraph-v10", "taskgraph-v9", Code.PLAN_NEWER),
        ("taskgraph-v5", "taskgraph-v6", Code.EXECUTION_VERSION_MISMATCH),
        ("taskgraph-v7", "taskgraph-v8", Code.EXECUTION_VERSION_MISMATCH),
        ("round-1", "taskgraph-v1", Code.EXECUTION_VERSION_MISMATCH),
        ("", "taskgraph-v1", Code.EXECUTION_VERSION_MISMATCH),
    ],
)
def test_a_graph_without_a_way_to_todays_format_is_refused_by_a_code(recorded: str, today: str, code: Code) -> None:
    with pytest.raises(VersionError) as caught:
        upgraded({"version": recorded, "nodes": []}, recorded, UPGRADES, today)
    assert caught.value.code is code
    assert caught.value.remedy


async def test_a_job_with_a_plan_of_a_newer_remit_is_left_to_others_with_a_code(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        journal, job = remit.runtime.journal, new_id("job")
        created = JobCreated(kind="plan", name="later", principal="alice", execution_version="remit-99")
        graph = msgspec.Raw(b'{"version":"taskgraph-v2","lanes":[]}')
        planned = PlanGenerated(task_graph=graph, schema_version="taskgraph-v2")
        patch = HeadPatch(state="pending", due_at=0, labels={"remit.name": "later"})
        await journal.create(stream_of(job), "job", created, planned, patch=patch)
        row = await until(remit, job, lambda row: bool(row.code))
        assert (row.state, row.code) == ("waiting", "PLAN_NEWER")
