"""The control plane: issues are claimed by label, worked on, blocked and unblocked, decided, and handed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from remit import Remit
from remit.errors import StateError
from remit.parts.work import unit
from remit.parts.work.control import work_on_issues
from remit.parts.work.references import IssueRef
from remit.parts.work.runs import RunOrder
from remit.parts.work.views import Turn, UnitView
from remit.parts.work.workflow import read_workflow
from remit.settings import load
from tests.parts.work.conftest import ALLOWED, Project
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

GROUPS = """
[executors.fail]
program = "false"
isolation = "none"

[groups.backend]
role = "backend"
executor = "mend"
max_concurrent = 2
listen_labels = ["kind:task", "role:backend"]

[groups.slow]
role = "qa"
executor = "hang"
switch_to = "mend"
timeout_seconds = 0
listen_labels = ["role:qa"]

[executors.bare]
program = "true"
setup = ["false"]
isolation = "none"

[groups.bare]
role = "dev"
executor = "bare"
listen_labels = ["role:dev"]

[groups.broken]
role = "ops"
executor = "fail"
listen_labels = ["role:ops"]
"""
TASK = ("kind:task", "role:backend")


@pytest.fixture
def groups(project: Project) -> Project:
    with (project.folder / "workflow.toml").open("a") as file:
        file.write(GROUPS)
    return project


async def settle(project: Project) -> list[str]:
    """Take turns until there is nothing left to do; every step."""
    steps = []
    async with asyncio.timeout(PATIENCE_S):
        while True:
            await project.remit.settled()
            turn: Turn = await project.work.turn()
            assert [step.error for step in turn.steps if step.error] == []
            steps += [f"{step.action} {step.issue_ref} {step.detail}".rstrip() for step in turn.steps]
            if not turn.steps and not turn.active:
                return steps


async def labels(project: Project, issue: str) -> tuple[str, ...]:
    """Return the labels of an issue."""
    found: tuple[str, ...] = (await project.work.control._project()[1].get_issue(IssueRef.parse(issue))).labels
    return found


async def test_issues_are_claimed_by_their_labels_the_most_urgent_first(groups: Project) -> None:
    plain = await groups.work.issue("One", labels=(*TASK, "prio:p2"))
    other = await groups.work.issue("Not ours", labels=("kind:task",))
    urgent = await groups.work.issue("Two", labels=(*TASK, "prio:p0"))
    third = await groups.work.issue("Three", labels=TASK)
    planned: Turn = await groups.work.turn(staged=True)
    assert [(step.action, step.issue_ref) for step in planned.steps] == [("start", urgent), ("start", plain)]
    assert [row.run_id for row in await groups.work.board()] == ["", "", "", ""], "nothing was done"
    steps = await settle(groups)
    assert [step for step in steps if step.startswith("start")] == [
        f"start {issue} mend" for issue in (urgent, plain, third)
    ]
    states = {row.issue_ref: row.state for row in await groups.work.board()}
    assert states == {plain: "review", urgent: "review", third: "review", other: "todo"}
    view: UnitView = await groups.work.view(urgent)
    assert (view.runs[0].role, view.runs[0].group) == ("backend", "backend")
    assert await labels(groups, urgent) == ("kind:task", "prio:p0", "role:backend", "state:review")
    events = await groups.remit.runtime.journal.read("issue/3")
    assert [b"state:doing" in event.data for event in events if event.kind == "issue_changed"] == [True, False]


async def test_an_issue_waits_for_those_that_it_depends_on(groups: Project) -> None:
    first = await groups.work.issue("First")
    second = await groups.work.issue("Second", body=f"## DependsOn\n\n- {first}\n", labels=TASK)
    assert await settle(groups) == [f"block {second} {first}", f"label {second} state:blocked"]
    assert (await groups.work.view(second)).reason == f"waits for {first}"
    await groups.work.decide(first, "done")
    steps = await settle(groups)
    assert steps[:3] == [f"unblock {second} {first}", f"label {second} state:todo", f"start {second} mend"]
    assert (await groups.work.view(second)).state == "review"
    order = await groups.work._store.order(IssueRef.parse(second), (await groups.work.view(second)).runs[0].run_id)
    assert order.depends_on == (first,)


async def test_a_run_that_does_not_end_in_time_is_switched(groups: Project) -> None:
    issue = await groups.work.issue("Slow", labels=("role:qa",))
    begun: Turn = await groups.work.turn()
    assert [step.action for step in begun.steps] == ["start"]
    survivor = await groups.survivor()
    workflow = groups.folder / "workflow.toml"
    text = workflow.read_text()
    workflow.write_text(text.replace("timeout_seconds = 0", "timeout_seconds = 1"))
    async with asyncio.timeout(PATIENCE_S):
        while not (turn := await groups.work.turn()).steps:
            await groups.remit.clock.sleep(0.1)
    workflow.write_text(text)
    assert [step.action for step in turn.steps if step.action != "label"] == ["stop", "start"]
    assert not survivor.exists(), "dead means dead"
    await settle(groups)
    view: UnitView = await groups.work.view(issue)
    assert (view.state, view.runs[0].executor, view.runs[0].reason) == ("review", "mend", "timeout")
    assert view.runs[0].previous == view.runs[1].run_id


async def test_a_run_that_fails_is_tried_again_and_then_blocked(groups: Project) -> None:
    issue = await groups.work.issue("Broken", labels=("role:ops",))
    steps = await settle(groups)
    assert [step for step in steps if step.startswith("start")] == [f"start {issue} fail"] * 3
    view: UnitView = await groups.work.view(issue)
    assert (view.state, len(view.results)) == ("blocked", 3)
    assert len(await groups.comments(issue)) == 3


async def test_a_run_that_lacks_its_environment_is_left_alone_for_a_while(
    groups: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit, "_REST_S", 3_600.0)
    issue = await groups.work.issue("Build", labels=("role:dev",))
    await settle(groups)
    view: UnitView = await groups.work.view(issue)
    assert [result.result_code for result in view.results.values()] == ["env_unavailable"]
    assert view.state == "doing"


@pytest.mark.parametrize(("label", "state"), [("decision:accept", "done"), ("decision:reject", "blocked")])
async def test_a_decision_of_the_issue_is_taken_over(groups: Project, label: str, state: str) -> None:
    issue = await groups.work.issue("One", labels=TASK)
    await settle(groups)
    forge = groups.work.control._project()[1]
    await forge.mutate_issue(IssueRef.parse(issue), labels=(*await labels(groups, issue), label))
    steps = await settle(groups)
    view: UnitView = await groups.work.view(issue)
    assert view.state == state
    if label == "decision:accept":
        assert steps[:2] == [f"accept {issue} decision:accept", f"label {issue} state:done"]
        assert (await forge.get_issue(IssueRef.parse(issue))).state == "closed"
    else:
        assert steps[:3] == [f"reject {issue} changes requested", f"label {issue} state:todo", f"start {issue} mend"]
        assert (len(view.runs), view.runs[0].reason) == (2, "changes requested")


@pytest.mark.parametrize(("approve", "state"), [(True, "done"), (False, "blocked")])
async def test_a_result_in_review_is_a_question_in_the_inbox(groups: Project, approve: bool, state: str) -> None:
    text = (groups.folder / "workflow.toml").read_text()
    (groups.folder / "workflow.toml").write_text(f"{text}\n[flow]\nask_for_decision = true\n")
    issue = await groups.work.issue("One", labels=TASK)
    steps = await settle(groups)
    run = (await groups.work.view(issue)).runs[0].run_id
    assert [step for step in steps if step.startswith("ask")] == [f"ask {issue} {run}"]
    confirmations = groups.remit.service.confirmations
    (question,) = await confirmations.pending()
    preview = await confirmations.preview(question.confirmation)
    assert preview is not None
    assert "+pass grep" in preview.diff
    reason = "" if approve else "Too slow."
    await confirmations.decide(
        question.confirmation, "approve" if approve else "deny", digest=question.digest, by="ann", reason=reason
    )
    (job,) = await groups.remit.service.jobs.rows(labels={"decides": run})
    async with asyncio.timeout(PATIENCE_S):
        await groups.remit.ended(job.job)
    await settle(groups)
    view: UnitView = await groups.work.view(issue)
    assert view.state == state
    if not approve:
        assert (len(view.runs), view.runs[0].reason) == (2, "changes requested")
        assert "Changes requested: " in "".join(await groups.comments(issue))


async def test_without_a_decision_that_is_required_a_result_closes_its_issue(groups: Project) -> None:
    text = (groups.folder / "workflow.toml").read_text()
    (groups.folder / "workflow.toml").write_text(f"{text}\n[flow]\nclose_issue_requires_decision = false\n")
    issue = await groups.work.issue("One", labels=TASK)
    await settle(groups)
    assert (await groups.work.view(issue)).state == "done"


async def test_a_run_whose_job_never_began_goes_on(groups: Project) -> None:
    issue = IssueRef.parse(await groups.work.issue("One", labels=TASK))
    runs = groups.work._runs
    begin, runs.carry_out = runs.carry_out, _die
    wanted = RunOrder(executor="mend", role="backend", by="alice", group="backend")
    with pytest.raises(ConnectionError):
        await runs.start(issue, read_workflow(groups.remit.settings), wanted)
    runs.carry_out = begin
    steps = await settle(groups)
    assert steps[0].startswith(f"resume {issue} ")
    view: UnitView = await groups.work.view(str(issue))
    assert (view.state, len(view.runs)) == ("review", 1)


async def _die(*_: object) -> None:
    raise ConnectionError


async def test_a_run_whose_job_was_cancelled_is_given_up_and_asks_a_person_in_the_end(groups: Project) -> None:
    issue = await groups.work.issue("Slow", labels=("role:qa",))
    for _ in range(3):
        turn: Turn = await groups.work.turn()
        assert turn.steps[-1].action == "start"
        job = (await groups.work.view(issue)).runs[0].job
        await groups.remit.service.jobs.cancel(job)
        async with asyncio.timeout(PATIENCE_S):
            await groups.remit.ended(job)
    turn = await groups.work.turn()
    assert [step.action for step in turn.steps] == ["stop", "label"]
    view: UnitView = await groups.work.view(issue)
    assert (view.state, view.reason) == ("needs-human", "3 runs ended without a result: its job cancelled")


async def test_a_step_that_fails_is_said_and_left_alone_for_a_while(groups: Project) -> None:
    await groups.work.issue("One", labels=TASK)
    store = groups.work._store
    store.start, begin = _refuse, store.start
    (step,) = (await groups.work.turn()).steps
    assert (step.action, step.error) == ("start", "refused")
    store.start = begin
    assert (await groups.work.turn()).steps == [], "it rests"


async def _refuse(*_: object, **__: object) -> None:
    raise StateError("refused")


@pytest.fixture
async def second(groups: Project) -> AsyncIterator[Remit]:
    """Another process, as far as the journal knows."""
    flags = {
        "app.principal": "alice",
        "journal.url": groups.remit.settings.journal.url,
        "policy.rules": ALLOWED,
        "sandbox.folder": str(groups.folder.with_name("sandbox")),
    }
    async with Remit(settings=load(env={}, cwd=groups.folder, flags=flags)) as remit:
        yield remit


async def test_one_process_at_a_time_is_the_control_plane(groups: Project, second: Remit) -> None:
    issue = await groups.work.issue("One", labels=TASK)
    stop, turns = asyncio.Event(), list[Turn]()
    works = work_on_issues(second, stop, "serve")
    assert works is not None
    beside = asyncio.create_task(works.run(lambda _: None))
    async with asyncio.timeout(PATIENCE_S):
        while (await groups.work.board())[0].state != "review":
            mark = await groups.remit.runtime.journal.heads_changed(0)
            turns.append(await groups.work.turn())
            if (await groups.work.board())[0].state != "review":
                await groups.remit.runtime.journal.heads_changed(mark)
        stop.set()
        await beside
        await second.runtime.journal.drained()  # a lease is given up without waiting for the disk
    view: UnitView = await groups.work.view(issue)
    assert len(view.runs) == 1
    assert (await groups.work.turn()).leads, "the other one gave the lease up"


def test_a_project_without_groups_has_no_control_plane(project: Project) -> None:
    assert work_on_issues(project.remit, asyncio.Event(), "serve") is None
