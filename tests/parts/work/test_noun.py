"""Work from the issue to its comment, in a Remit of its own, with real git and real programs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from remit.codes import Code
from remit.errors import RemitError
from remit.parts.sandbox.scratch import scratch
from remit.parts.work.references import IssueRef
from remit.parts.work.result import Changes, Test, WorkResult
from remit.parts.work.views import UnitView
from remit.record.views import JobRow
from tests.parts.work.conftest import Project
from tests.parts.work.executors.repository import git
from tests.patience import PATIENCE_S


@pytest.mark.slow
async def test_an_issue_is_worked_on_proved_and_written_back_once(project: Project) -> None:
    issue = await project.work.issue("Mend the clock", body="It is broken.")
    started = await project.work.start(issue, "mend")
    view = await project.ended(started)
    assert (issue, view.state, view.active, view.unwritten) == ("local#1", "review", "", [])
    result = view.results[started.run_id]
    assert [test.result for test in result.tests] == ["pass"]
    assert git(project.folder, "show", f"{result.changes.commit}:clock.txt") == "mended"
    assert git(project.folder, "status", "--porcelain", "--untracked-files=no") == ""
    (comment,) = await project.comments(issue)
    assert f"workrun:{started.run_id}" in comment
    assert view.written == {f"workrun:{started.run_id}": "local#1/e2"}
    await project.work.write(issue)
    assert len(await project.comments(issue)) == 1
    branch = f"run/local%231/{started.run_id}"
    assert (await project.work.decide(issue, "done", reason="merged")).state == "done"
    assert len(git(project.folder, "worktree", "list").splitlines()) == 1, "its checkout is gone"
    assert git(project.folder, "branch", "--list", branch), "its branch alone holds the work"
    git(project.folder, "merge", "--quiet", branch)
    await project.work.decide(issue, "done")
    assert not git(project.folder, "branch", "--list", branch), "main holds the work by now"
    (row,) = await project.work.board()
    assert (row.issue_ref, row.state, row.title) == ("local#1", "done", "Mend the clock")


@pytest.mark.slow
async def test_a_switch_fences_ends_every_process_and_hands_over_what_was_left(project: Project) -> None:
    issue = await project.work.issue("Mend the clock")
    old = await project.work.start(issue, "hang")
    survivor = await project.survivor()
    assert survivor.exists()
    new = await project.work.switch(issue, "mend", "timeout")
    assert not survivor.exists(), "dead means dead"
    view = await project.ended(new)
    assert view.state == "review"
    run = {run.run_id: run for run in view.runs}
    assert (run[old.run_id].standing, run[new.run_id].previous) == ("stopped", old.run_id)
    history = git(project.folder, "log", "--format=%s", view.results[new.run_id].changes.commit).splitlines()
    assert f"What {old.run_id} left" in history
    late = WorkResult(
        issue_ref=issue,
        run_id=old.run_id,
        status="ok",
        summary="Late.",
        changes=Changes(commit="x"),
        tests=(Test(result="n/a"),),
    )
    verdict = await project.work.result(late)
    assert (verdict.accepted, verdict.code) == (False, "stale_result_discarded")
    assert await project.work.late(issue, old.run_id) == [late]
    switched, ended = await project.comments(issue)
    for told in (
        f"Trigger: switch:{new.run_id}",
        "Action: claim",
        f"place of {old.run_id}: timeout",
        "- mend works on it",
    ):
        assert told in switched
    assert f"Trigger: workrun:{new.run_id}" in ended
    assert "ReadUpTo: local#1/e1" in ended, "what was written since was not taken into account"


async def test_a_person_is_an_executor(project: Project) -> None:
    issue = await project.work.issue("Ask the vendor")
    started = await project.work.start(issue, "manual")
    assert started.job == ""
    handed = WorkResult(
        issue_ref=issue, run_id=started.run_id, status="blocked", summary="They are away.", blocked_by=("vendor",)
    )
    verdict = await project.work.result(handed)
    assert (verdict.accepted, verdict.state) == (True, "blocked")
    (comment,) = await project.comments(issue)
    assert "They are away." in comment


async def test_an_issue_has_parts_that_show_how_far_they_are(project: Project) -> None:
    whole = await project.work.issue("Mend all clocks", body="See SpecRef.")
    named = await project.work.issue("Clock 1", body="SpecRef: none\nParent: #1")
    parts = [named, await project.work.issue("Clock 2", parent=whole)]
    await project.work.decide(parts[0], "done")
    await project.work.start(parts[1], "manual")
    view: UnitView = await project.work.view(whole)
    assert [(row.issue_ref, row.state) for row in view.children] == [(parts[1], "doing"), (parts[0], "done")]
    assert {(await project.work.view(part)).parent for part in parts} == {whole}
    assert [row.parent for row in await project.work.board()] == [whole, whole, ""]


@pytest.mark.parametrize(
    ("body", "contracts", "spec", "warns"),
    [
        ("", "none", "", True),
        ("Mend it.", "none", "", False),
        ("SpecRef: docs/clock.md\nContractsRef: api@3\n\n## Goal", "api@3", "docs/clock.md", False),
        ("SpecRef: none\nContractsRef: none", "none", "", False),
    ],
)
async def test_an_order_names_the_specification_and_contracts_of_its_issue(
    project: Project, body: str, contracts: str, spec: str, *, warns: bool
) -> None:
    issue = await project.work.issue("Mend the clock", body=body)
    started = await project.work.start(issue, "manual")
    order = await project.work._store.order(IssueRef.parse(issue), started.run_id)
    assert (order.contracts_ref, order.spec_ref, order.spec_snapshot) == (contracts, spec, body)
    assert bool(started.warnings) == warns


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "words", "state", "code"),
    [
        ("clock.txt", "mended", "review", ""),
        ("clock.txt", "lies", "doing", "test_failed"),
        ("migrations/2.sql", "mended", "doing", "permission_denied"),
    ],
)
async def test_what_a_person_commits_is_looked_at_too(
    project: Project, path: str, words: str, state: str, code: str
) -> None:
    git(project.folder, "checkout", "--quiet", "-b", "theirs")
    for name, text in {path: f"{words}\n", "clock.txt": f"{words}\n"}.items():
        (project.folder / name).write_text(text)
    git(project.folder, "add", path, "clock.txt")
    git(project.folder, "commit", "--quiet", "--message", "Mend")
    commit = git(project.folder, "rev-parse", "HEAD")
    git(project.folder, "checkout", "--quiet", "main")
    issue = await project.work.issue("Mend the clock")
    run = (await project.work.start(issue, "manual")).run_id
    said = WorkResult(
        issue_ref=issue,
        run_id=run,
        status="ok",
        changes=Changes(commit=commit),
        tests=(Test(result="n/a"),),
        summary="Done.",
    )
    assert (await project.work.result(said)).state == state
    result = (await project.work.view(issue)).results[run]
    assert result.result_code == code
    if code != "permission_denied":
        assert [test.result for test in result.tests] == ["pass" if state == "review" else "fail"], "Remit ran them"
    assert len(git(project.folder, "worktree", "list").splitlines()) == 1


@pytest.mark.slow
async def test_a_run_that_no_worker_has_is_stopped_and_replaced_at_once(project: Project) -> None:
    issue = await project.work.issue("Mend the clock")
    await project.remit.engine.stop()  # as after `remit work run --detach`
    first = await project.work.start(issue, "mend")
    async with asyncio.timeout(PATIENCE_S):
        assert (await project.work.stop(issue, "not now")).state == "todo"
        second = await project.work.start(issue, "mend")
        third = await project.work.switch(issue, "mend", "another")
    await project.remit.engine.restart()
    async with asyncio.timeout(PATIENCE_S):
        view = await project.ended(third)
        assert {(await project.remit.ended(run.job)).state for run in (first, second)} == {"cancelled"}
    assert (view.state, list(view.results)) == ("review", [third.run_id]), "a worker ends the others"


@pytest.mark.slow
async def test_a_run_whose_job_ends_while_it_is_stopped_is_stopped(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue = await project.work.issue("Mend the clock")
    started = await project.work.start(issue, "hang")
    await project.survivor()
    jobs = project.remit.service.jobs
    cancel = jobs.cancel

    async def cancel_late(job: str, *, by: str = "", reason: str = "") -> JobRow:
        await cancel(job, by=by, reason=reason)
        await project.remit.ended(job)
        return await cancel(job, by=by, reason=reason)

    monkeypatch.setattr(jobs, "cancel", cancel_late)
    assert (await project.work.stop(issue, "enough")).state == "todo"
    assert (await jobs.row(started.job)).state == "cancelled"


@pytest.mark.slow
async def test_what_cannot_be_previewed_is_refused_when_it_is_staged(project: Project) -> None:
    (project.folder / "workflow.toml").write_text('[outbox]\nbackend = "github"\n')
    with pytest.raises(RemitError, match=r"outbox\.create: .*names no repo") as refused:
        await project.work.staged("issue", {"title": "Mend the clock"})
    assert refused.value.code is Code.InvalidInput


@pytest.mark.slow
async def test_a_result_by_hand_waits_for_the_end_of_the_program(project: Project) -> None:
    issue = await project.work.issue("Mend the clock")
    started = await project.work.start(issue, "hang")
    survivor = await project.survivor()
    by_hand = WorkResult(issue_ref=issue, run_id=started.run_id, status="ok", summary="I did it.")
    with pytest.raises(RemitError) as refused:
        await project.work.result(by_hand)
    assert refused.value.code is Code.WORK_CONFLICT
    assert (await project.work.stop(issue, "by hand")).state == "todo"
    assert not survivor.exists(), "dead means dead"
    assert (await project.work.result(by_hand, adopt=True)).accepted


@pytest.mark.slow
async def test_a_result_that_names_no_run_needs_a_person_and_is_not_written_back(project: Project) -> None:
    issue = await project.work.issue("Mend the clock")
    view = await project.ended(await project.work.start(issue, "silent"))
    assert (view.state, view.results, await project.comments(issue)) == ("needs-human", {}, [])
    (run,) = view.runs
    assert (run.standing, run.code) == ("refused", "output_unparseable")
    outcome = await project.remit.call("outbox.get", {"issue_ref": issue})
    assert outcome.value["labels"] == ["state:needs-human"]


async def test_a_disk_that_fails_the_adapter_is_a_result_with_a_code(project: Project) -> None:
    packs = project.folder.with_name("sandbox") / "work" / "context_packs"
    packs.parent.mkdir(parents=True)
    packs.write_text("no folder")
    issue = await project.work.issue("Mend the clock")
    view = await project.ended(await project.work.start(issue, "mend"))
    (result,) = view.results.values()
    assert (view.state, result.status, result.result_code) == ("doing", "fail", "env_unavailable")
    assert str(packs) in result.summary


@pytest.mark.slow
@pytest.mark.parametrize(("decision", "state"), [("approve", "review"), ("deny", "doing")])
async def test_a_person_answers_what_an_agent_asks(
    project: Project, decision: Literal["approve", "deny"], state: str
) -> None:
    issue = await project.work.issue("Mend the clock")
    started = await project.work.start(issue, "agent")
    confirmations = project.remit.service.confirmations
    mark = 0
    async with asyncio.timeout(PATIENCE_S):
        while not (asked := await confirmations.pending()):
            mark = await project.remit.runtime.journal.heads_changed(mark)
    (question,) = asked
    assert question.tool == "acp.permit"
    assert question.args["tool_call"]["rawInput"] == {"command": "echo mended > clock.txt"}
    assert question.principal == "alice"
    await confirmations.decide(question.confirmation, decision, digest=question.digest, by="bob")
    assert (await project.ended(started)).state == state


@pytest.mark.parametrize(
    ("issue", "executor", "code"),
    [
        ("local#9", "mend", Code.not_found),
        ("I_kwDO", "mend", Code.WORK_INVALID),
        ("local#1", "nobody", Code.WORK_INVALID),
        ("local#1", "acp:nobody", Code.WORK_INVALID),
        ("local#1", "cli:mend", Code.WORK_INVALID),
    ],
)
async def test_what_cannot_be_started_says_why(project: Project, issue: str, executor: str, code: Code) -> None:
    await project.work.issue("One")
    with pytest.raises(RemitError) as refused:
        await project.work.start(issue, executor)
    assert refused.value.code is code


async def test_a_workflow_that_breaks_the_form_is_named(project: Project) -> None:
    await project.work.issue("One")
    (project.folder / "workflow.toml").write_text("[executers.x]\nprogram = 'sh'\n")
    for ask in (project.work.start("local#1", "x"), project.work.issue("Two")):
        with pytest.raises(RemitError) as refused:
            await ask
        assert refused.value.code is Code.WORK_INVALID


class TestInTheSandbox:
    """The same, where a program can do no harm."""

    pytestmark = pytest.mark.slow

    @pytest.fixture
    def isolation(self) -> str:
        return "sandbox"

    @pytest.fixture
    def place(self) -> Iterator[Path]:
        with scratch() as folder:
            folder.chmod(0o755)
            yield folder

    async def test_an_issue_is_worked_on(self, project: Project) -> None:
        issue = await project.work.issue("Mend the clock")
        view = await project.ended(await project.work.start(issue, "mend"))
        assert view.state == "review"
        assert [test.result for result in view.results.values() for test in result.tests] == ["pass"]
