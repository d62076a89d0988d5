"""Work: hand an issue to an executor, switch, stop, decide, and see where all of it stands."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import ProviderError, StateError, UsageError
from remit.jobs.state import ENDED
from remit.operation import Body, By, operation
from remit.parts.work.forms import Form, read_result_in
from remit.parts.work.references import IssueRef
from remit.parts.work.result import Test, WorkResult
from remit.parts.work.runs import ROLE, STOP_S, ProjectRuns, RunOrder
from remit.parts.work.stage import StagedWrite, Verb, stage
from remit.parts.work.store import UnitRow, Verdict
from remit.parts.work.unit import MANUAL, State, parent_in, tool_of
from remit.parts.work.views import Started, Turn, UnitView
from remit.parts.work.workflow import read_workflow, repository_of, require_workflow

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.parts.work.control import ControlPlane
    from remit.parts.work.order import WorkOrder
    from remit.parts.work.unit import Run
    from remit.service.jobs import Jobs
    from remit.settings import Settings

Reference = Annotated[str, msgspec.Meta(min_length=3, max_length=512)]
Reason = Annotated[str, msgspec.Meta(max_length=1_000)]


class WorkNoun:
    """The work of one project."""

    def __init__(
        self,
        runs: ProjectRuns,
        jobs: Jobs,
        control: ControlPlane,
        principal: str,
        settings: Settings,
        copy: Callable[[list[StagedWrite]], WorkNoun],
    ) -> None:
        self._copy = copy
        self._store = runs.store
        self._runs = runs
        self._jobs = jobs
        self._principal = principal
        self._settings = settings
        self.control = control
        """Hands out the issues of the project."""

    # --- queries

    @operation("work.board", "GET /v1/work", "read", "List the issues that are worked on.")
    async def board(
        self,
        *,
        states: tuple[State, ...] = (),
        before: str = "",
        limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100,
    ) -> list[UnitRow]:
        """List the issues that are worked on, newest first.

        `before` continues after the last one of an earlier page.
        """
        return await self._store.page(states=states, before=before, limit=limit)

    @operation("work.view", "GET /v1/work/unit", "read", "Show an issue's runs.", codes=(Code.WORK_NOT_FOUND,))
    async def view(self, issue_ref: Reference) -> UnitView:
        """Show the state of an issue, its runs and their results.

        Raise NotFoundError (WORK_NOT_FOUND) or UsageError (WORK_INVALID).
        """
        issue = IssueRef.parse(issue_ref)
        unit = await self._store.unit(issue)
        results = {run: await self._store.result(issue, run) for run in unit.results}
        return UnitView(
            issue_ref=issue_ref,
            title=unit.title,
            state=unit.state,
            reason=unit.reason,
            parent=unit.parent,
            children=await self._store.children(issue),
            active=unit.active,
            runs=list(reversed(unit.runs.values())),
            results={run: result for run, result in results.items() if result is not None},
            unready={run.run_id: reason for run in unit.runs.values() if (reason := await self._unready(run, results))},
            unwritten=sorted(unit.unwritten),
            written=unit.written,
        )

    async def _unready(self, run: Run, results: dict[str, WorkResult | None]) -> str:
        """Return why a pull request does not show the result of its run; empty if it does, or if there is none."""
        result = results.get(run.run_id)
        if result is None or not result.changes.pr or not run.job or await self._runs.standing(run) != "completed":
            return ""
        return str((await self._jobs.result(run.job)).get("unready", ""))

    @operation(
        "work.late", "GET /v1/work/late", "read", "Show what came too late of a run.", codes=(Code.WORK_NOT_FOUND,)
    )
    async def late(self, issue_ref: Reference, run_id: str = "") -> list[WorkResult]:
        """Show the results that came when their run was no longer the active one: they are archived, merged nowhere.

        Of all runs if none is named.

        Raise NotFoundError (WORK_NOT_FOUND).
        """
        return await self._store.late(IssueRef.parse(issue_ref), run_id)

    @operation(
        "work.staged",
        "POST /v1/work/staged",
        "read",
        "Show what a command would write.",
        codes=(Code.WORK_CONFLICT, Code.WORK_INVALID, Code.WORK_NOT_FOUND),
        body=Body("StagedBody", "A command, by its name without `work.`, and its arguments."),
        example={"verb": "start", "args": {"issue_ref": "local#1", "executor": "shell"}},
    )
    async def staged(self, verb: Verb, args: dict[str, Any], *, by: By = "") -> list[StagedWrite]:
        """Show what a command would write to the journal and to issues, and what it would start; do nothing of it.

        Raise what the command raises.
        """
        writes: list[StagedWrite] = []
        await stage(self._copy(writes), verb, args, by)
        return writes

    # --- commands

    @operation(
        "work.issue",
        "POST /v1/work/issues",
        "call",
        "Open an issue.",
        status=201,
        body=Body("IssueBody", "A new issue."),
        example={"title": "Fix the flaky test", "body": "tests/test_clock.py fails on Mondays."},
    )
    async def issue(
        self, title: str, *, body: str = "", labels: tuple[str, ...] = (), parent: str = "", by: By = ""
    ) -> str:
        """Open an issue in the outbox, and work on it from now on; its reference.

        With `parent` it is a part of that issue, which shows how far its parts are. Raise UsageError (WORK_INVALID).
        """
        require_workflow(self._settings)
        if parent:
            body = f"Parent: {IssueRef.parse(parent)}\n\n{body}"
        created = await self._runs.call("outbox.create", {"title": title, "body": body, "labels": list(labels)}, by)
        issue = IssueRef.parse(created["issue_ref"])
        await self._store.open(issue, title, by or self._principal, parent_in(body, issue.project))
        return str(issue)

    @operation(
        "work.start",
        "POST /v1/work/runs",
        "call",
        "Hand an issue to an executor.",
        status=201,
        codes=(Code.WORK_CONFLICT, Code.WORK_INVALID, Code.env_unavailable, Code.not_found),
        body=Body("RunBody", "Who is to do the work."),
        example={"issue_ref": "local#1", "executor": "shell"},
    )
    async def start(
        self, issue_ref: Reference, executor: str, *, role: str = ROLE, reason: Reason = "", by: By = ""
    ) -> Started:
        """Hand an issue to an executor: a new run is the active one, and a job carries it out.

        Raise StateError (WORK_CONFLICT) while another run is active, UsageError (WORK_INVALID) for an executor that
        workflow.toml does not name.
        """
        wanted = RunOrder(executor=executor, role=role, reason=reason, by=by)
        return await self._runs.start(IssueRef.parse(issue_ref), require_workflow(self._settings), wanted)

    @operation(
        "work.switch",
        "POST /v1/work/switch",
        "call",
        "Put another executor in the place of the active one.",
        status=201,
        codes=(Code.WORK_CONFLICT, Code.WORK_INVALID, Code.WORK_NOT_FOUND),
        body=Body("SwitchBody", "Who takes over, and why."),
        example={"issue_ref": "local#1", "executor": "shell", "reason": "timeout"},
        held_s=STOP_S,
    )
    async def switch(
        self, issue_ref: Reference, executor: str, reason: Reason, *, role: str = ROLE, by: By = ""
    ) -> Started:
        """Fence the active run, wait until no process of it lives, and hand the issue to another executor.

        Raise StateError (WORK_CONFLICT) if the old run's job does not end.
        """
        if executor != MANUAL:
            from remit.parts.work.executors.registry import hand_of  # noqa: PLC0415 - who looks works with no executor

            hand_of(require_workflow(self._settings), executor).executor.require(os.environ)
        wanted = RunOrder(executor=executor, role=role, reason=reason, by=by, instead=True)
        return await self._runs.start(IssueRef.parse(issue_ref), require_workflow(self._settings), wanted)

    @operation(
        "work.stop",
        "POST /v1/work/stop",
        "decide",
        "Stop the active run of an issue.",
        codes=(Code.WORK_CONFLICT, Code.WORK_NOT_FOUND),
        body=Body("StopBody", "Why a run is to stop."),
        example={"issue_ref": "local#1", "reason": "no longer needed"},
        held_s=STOP_S,
    )
    async def stop(self, issue_ref: Reference, reason: Reason, *, by: By = "") -> UnitView:
        """Fence the active run, if there is one, and wait until no process of it lives.

        Whatever it still sends is archived. Raise StateError (WORK_CONFLICT) if its job does not end.
        """
        await self._runs.stop(IssueRef.parse(issue_ref), reason, by)
        return await self.view(issue_ref)

    @operation(
        "work.result",
        "POST /v1/work/results",
        "call",
        "Hand in the result of a run that a person did, or adopt one that came too late.",
        codes=(Code.WORK_CONFLICT, Code.WORK_INVALID, Code.WORK_NOT_FOUND),
        body=Body("ResultBody", "The result of a run."),
        example={"result": {"issue_ref": "local#1", "run_id": "2026-02-14-work-0001", "status": "ok"}},
        ends=True,
    )
    async def result(self, result: WorkResult, *, adopt: bool = False, by: By = "") -> Verdict:
        """Take the result of a run, and queue its comment.

        `adopt` takes one of a run that is no longer active, by a person's decision. Raise UsageError
        (WORK_INVALID), NotFoundError (WORK_NOT_FOUND), or StateError (WORK_CONFLICT) while a program works on the
        active run.
        """
        result.check(Code.WORK_INVALID)
        issue = IssueRef.parse(result.issue_ref)
        order = await self._store.order(issue, result.run_id)
        unit = await self._store.unit(issue)
        job = unit.runs[result.run_id].job
        if unit.active == result.run_id and job and (await self._jobs.row(job)).state not in ENDED:
            reason = f"{issue}: {job} still works on {result.run_id}"
            remedy = "Stop it first: `remit work stop`; then hand the result in, and adopt it."
            raise StateError(reason, code=Code.WORK_CONFLICT, remedy=remedy)
        if not job and result.status == "ok":
            result = await self._proved(order, await self._kept_to(order, result), by)
        verdict = await self._store.accept(order, result, adopter=(by or self._principal) if adopt else "")
        if verdict.trigger:
            with suppress(StateError):  # a comment that a person has to approve stays queued
                await self.write(result.issue_ref, by=by)
        return verdict

    async def _proved(self, order: WorkOrder, result: WorkResult, by: str) -> WorkResult:
        """Return the result of a person with the acceptance commands as Remit ran them, if their commit is here."""
        from remit.process.git import commit_of  # noqa: PLC0415 - who looks runs no git

        repository = repository_of(read_workflow(self._settings), self._settings.folder, order.role)
        commit = await commit_of(repository, result.changes.commit) if result.changes.commit else ""
        if not (commit and order.constraints.commands and result.status == "ok"):
            return result
        proof_args = {"issue_ref": order.issue_ref, "run_id": order.run_id, "commit": commit}
        proof = await self._runs.call(tool_of(MANUAL), proof_args, by)
        tests = msgspec.convert(proof.get("tests", []), tuple[Test, ...])
        result = replace(result, tests=tests or result.tests)
        if all(test.result == "pass" for test in tests):
            return result
        reason = f"the acceptance commands do not pass: {result.summary}"
        return replace(result, status="fail", result_code=Code.test_failed.name, summary=reason)

    async def _kept_to(self, order: WorkOrder, result: WorkResult) -> WorkResult:
        """Return the result of a person, as failed if their commit is here and changes what it may not."""
        from remit.process.git import changed_by  # noqa: PLC0415 - who looks runs no git

        repository = repository_of(read_workflow(self._settings), self._settings.folder, order.role)
        rules = order.constraints
        if not (rules.forbidden_paths and result.changes.commit):
            return result
        try:
            changed = await changed_by(repository, result.changes.commit, rules.target_branch or "HEAD")
        except ProviderError as error:
            reason = f"the commit cannot be looked at: {error}"
            raise StateError(reason, code=Code.env_unavailable, remedy="Install git.") from error
        from remit.parts.work.executors.worktree import paths_of  # noqa: PLC0415 - who looks has no tree

        broken = paths_of(changed, rules.forbidden_paths)
        if not broken:
            return result
        reason = f"it changed what it may not: {', '.join(broken[:5])}: {result.summary}"
        return replace(result, status="fail", result_code=Code.permission_denied.name, summary=reason)

    @operation(
        "work.submit",
        "POST /v1/work/documents",
        "call",
        "Hand in a result as a document: JSON, protobuf or text.",
        codes=(Code.WORK_CONFLICT, Code.WORK_INVALID, Code.WORK_NOT_FOUND),
        body=Body("DocumentBody", "The bytes of a result in base64, their form, and the run that it is the result of."),
        example={
            "issue_ref": "local#1",
            "run_id": "2026-02-14-work-0001",
            "document": "SXNzdWVSZWY6IGxvY2FsIzE=",
            "form": "txt",
        },
        ends=True,
    )
    async def submit(
        self, issue_ref: Reference, run_id: str, document: bytes, form: Form, *, adopt: bool = False, by: By = ""
    ) -> Verdict:
        """Take a result in one of the forms that programs write, as `work.result` takes it.

        Raise UsageError (WORK_INVALID), which asks for what is missing, and whatever `result` raises.
        """
        try:
            result = read_result_in(form, document)
            result.require_echo(issue_ref, run_id)
        except UsageError as error:
            raise UsageError(error.message, code=Code.WORK_INVALID, remedy=error.remedy) from error
        return await self.result(result, adopt=adopt, by=by)

    @operation(
        "work.decide",
        "POST /v1/work/decide",
        "decide",
        "Put an issue into a state.",
        codes=(Code.WORK_CONFLICT, Code.WORK_INVALID, Code.WORK_NOT_FOUND),
        body=Body("WorkDecideBody", "The state, and why."),
        example={"issue_ref": "local#1", "state": "done", "reason": "merged"},
    )
    async def decide(self, issue_ref: Reference, state: State, *, reason: Reason = "", by: By = "") -> UnitView:
        """Put an issue into a state: done after a review, todo again, blocked, or unblocked.

        When it is done, the checkouts of its runs are taken away, and branches whose commits another one holds.

        Raise StateError (WORK_CONFLICT) while a run is active.
        """
        issue, workflow = IssueRef.parse(issue_ref), read_workflow(self._settings)
        await self._store.move(issue, state, reason=reason, by=by or self._principal)
        if state == "done":
            await self._runs.clean(issue, workflow)
        return await self.view(issue_ref)

    @operation(
        "work.turn",
        "POST /v1/work/turns",
        "call",
        "Hand out issues once, as the control plane.",
        codes=(Code.WORK_INVALID,),
        body=Body("TurnBody", "Whether anything is done."),
        example={"staged": True},
        held_s=STOP_S,
    )
    async def turn(self, *, staged: bool = False) -> Turn:
        """Look at the issues of every group, and take the next step of each: claim, stop, block, unblock, write.

        `staged` says what would be done, and does nothing. Nothing is done while another process is the control plane.
        Raise UsageError (WORK_INVALID), or StateError if the forge does not list its issues.
        """
        return await self.control.turn(staged=staged)

    @operation(
        "work.write",
        "POST /v1/work/write",
        "call",
        "Write the comments of an issue that are queued.",
        codes=(Code.WORK_NOT_FOUND,),
        body=Body("WriteBody", "Which issue."),
        example={"issue_ref": "local#1"},
        ends=True,
    )
    async def write(self, issue_ref: Reference, *, by: By = "") -> UnitView:
        """Write the comments that are queued for an issue, each once, such as after a crash before it was written."""
        await self._runs.write(IssueRef.parse(issue_ref), by)
        return await self.view(issue_ref)
