"""Runs: how one becomes the active one, is carried out by a job, and ends with all that it started."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError, NotFoundError, ProviderError, StateError, UsageError
from remit.jobs.state import ENDED, stream_of
from remit.jobs.state import KIND as JOB
from remit.journal.leases import heads_changed_within
from remit.journal.sharded.placement import new_identifier
from remit.parts.work.folder import WorkFolder, tree_folder
from remit.parts.work.order import NO_CONTRACTS, WorkOrder
from remit.parts.work.pack import ContextPack
from remit.parts.work.references import IssueRef, RunId
from remit.parts.work.store import WorkStore
from remit.parts.work.unit import MANUAL, Run, WorkUnit, dependencies_in, field_in, parent_in
from remit.parts.work.views import Started
from remit.parts.work.workflow import Workflow, repository_of
from remit.redact import line
from remit.service.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.journal.journal import Journal
    from remit.service.jobs import Jobs
    from remit.service.parts import Worker
    from remit.service.sessions import Sessions

_log: Final = logging.getLogger("remit.work")
RECIPE: Final = "work_run"
ROLE: Final = "work"
STOP_S: Final = 120.0
"""Seconds that a job may take to end once it was asked to."""
_LOOK_S: Final = 1.0
STUCK: Final = "stuck"
"""The standing of a job that only a person can have go on."""


class RunOrder(NamedTuple):
    """The run that is to begin."""

    executor: str
    role: str = ROLE
    reason: str = ""
    by: str = ""
    group: str = ""
    """The group for which the control plane starts it; its issue is claimed first."""
    instead: bool = False
    """Whether it takes the place of the active run, and of its group."""


class RunsOpening(NamedTuple):
    """The means that runs are made of."""

    store: WorkStore
    jobs: Jobs
    sessions: Callable[[], Sessions]
    """Asked when a run calls a tool: to look needs no gateway, and none of the tools behind it."""
    principal: str
    """Acts where no one else is named."""
    root: WorkFolder
    """Worktrees lie in it."""
    folder: Path
    """The project's, whose workflow it is."""
    worker: Worker
    """Takes over the jobs of runs that are to end, if their process died."""


class ProjectRuns:
    """The runs of one project."""

    def __init__(self, opening: RunsOpening) -> None:
        self.store = opening.store
        self.journal: Journal = opening.store.journal
        self._jobs = opening.jobs
        self._sessions = opening.sessions
        self._principal = opening.principal
        self._place = opening.root
        self._folder = opening.folder
        self._worker = opening.worker

    async def start(self, issue: IssueRef, workflow: Workflow, wanted: RunOrder) -> Started:
        """Make a run the active one and start its job. Raise UsageError, StateError or NotFoundError."""
        if wanted.executor != MANUAL:
            from remit.parts.work.executors.registry import hand_of  # noqa: PLC0415 - who looks works with no executor

            hand = hand_of(workflow, wanted.executor)
            hand.executor.require(os.environ)
            wanted = wanted._replace(executor=hand.name)
            await _require_commit(repository_of(workflow, self._folder, wanted.role))
        by = wanted.by or self._principal
        known = await self.call("outbox.get", {"issue_ref": str(issue)}, by)
        body = known.get("body", "")
        unit = await self.store.open(issue, known["title"], by, parent_in(body, issue.project))
        if not wanted.instead:
            unit = await self._without_ended(issue, unit, by)
        elif (active := unit.runs.get(unit.active)) is not None and active.job:
            await self._end(active, wanted.reason)  # before the fence moves: if it does not end, nothing has changed

        def order(run: RunId) -> WorkOrder:
            return WorkOrder(
                issue_ref=str(issue),
                run_id=str(run),
                role=wanted.role,
                repo_dir=str(tree_folder(self._place.path, issue, str(run))),
                spec_ref=field_in(body, "SpecRef") or (known.get("url", "") if body else ""),
                spec_snapshot=body,
                contracts_ref=field_in(body, "ContractsRef") or NO_CONTRACTS,
                constraints=workflow.constraints,
                depends_on=tuple(str(dependency) for dependency in dependencies_in(body, issue.project)),
            )

        last = next(reversed(unit.runs), "")
        group = wanted.group or (unit.runs[last].group if wanted.instead and last else "")
        started = await self.store.start(
            issue,
            order,
            role=wanted.role,
            executor=wanted.executor,
            by=by,
            reason=wanted.reason,
            previous=last,
            job="" if wanted.executor == MANUAL else await new_identifier("job", JOB, self.store.journal.answers),
            group=group,
            instead=wanted.instead,
            read_up_to=known.get("read_up_to", ""),
        )
        run = (await self.store.unit(issue)).runs[started.run_id]
        await self.carry_out(issue, run, workflow)
        with suppress(StateError):  # a comment that a person has to approve stays queued
            await self.write(issue, by)
        return Started(issue_ref=str(issue), run_id=started.run_id, job=run.job, warnings=list(started.warnings()))

    async def carry_out(self, issue: IssueRef, run: Run, workflow: Workflow) -> None:
        """End the runs before it, then start its job under the name that the run has for it, unless that was done.

        Do nothing for a run that is no longer the active one.
        """
        unit = await self.store.unit(issue)
        if unit.active != run.run_id:
            return
        for other in takewhile(lambda other: other.run_id != run.run_id, unit.runs.values()):
            if other.job:
                await self._end(other, run.reason or f"{run.run_id} took its place")
        if run.executor == MANUAL:
            return
        from remit.parts.work.executors.registry import hand_of  # noqa: PLC0415 - who looks works with no executor

        hand = hand_of(workflow, run.executor)
        inputs = {
            "issue_ref": str(issue),
            "run_id": run.run_id,
            "executor": run.executor,
            "command": list(hand.executor.command),
            "claim": bool(run.group) and workflow.flow.require_claim_before_work,
        }
        labels = {"issue": str(issue), "run": run.run_id, "executor": run.executor}
        options = Options(title=f"{issue} {run.run_id}", labels=labels, job=run.job, principal=run.by)
        with suppress(AppendConflictError):
            await self._jobs.start_named(RECIPE, inputs, options)

    async def standing(self, run: Run) -> str:
        """Return the state of a run's job, or `stuck`; empty for one that has not been started."""
        try:
            row = await self._jobs.row(run.job)
        except NotFoundError:
            return ""
        return STUCK if row.stuck else row.state

    async def stop(self, issue: IssueRef, reason: str, by: str) -> None:
        """Fence the active run, and wait until no process of it lives. Raise StateError (WORK_CONFLICT)."""
        unit = await self.store.unit(issue)
        if unit.active:
            await self.store.stop(issue, unit.active, reason=reason, by=by or self._principal)
        for run in unit.runs.values():
            if run.job:
                await self._end(run, reason)

    async def ask(self, issue: IssueRef, run_id: str) -> None:
        """Start the job that asks a person whether the result of a run is good."""
        labels = {"issue": str(issue), "decides": run_id}
        options = Options(title=f"{issue} {run_id}: is it good?", labels=labels, principal=self._principal)
        from remit.parts.work.decisions import RECIPE  # noqa: PLC0415 - with all that makes a recipe

        await self._jobs.start_named(RECIPE, {"issue_ref": str(issue), "run_id": run_id}, options)

    async def is_asked(self, issue: IssueRef, run_id: str) -> bool:
        """Return whether a person is, or was, asked about the result of a run."""
        return bool(await self._jobs.rows(labels={"issue": str(issue), "decides": run_id}, limit=1))

    async def clean(self, issue: IssueRef, workflow: Workflow) -> None:
        """Take away the checkouts of an issue's runs, and branches whose commits another branch or tag holds.

        What no commit holds goes to a folder beside the pack of its run before. What cannot be taken away stays, and is
        named in the log.
        """
        for run in reversed((await self.store.unit(issue)).runs.values()):
            place = tree_folder(self._place.path, issue, run.run_id)
            from remit.parts.work.executors.worktree import Worktree  # noqa: PLC0415 - who looks has no tree

            tree = Worktree.of(repository_of(workflow, self._folder, run.role), place, issue, run.run_id)
            try:
                if run.executor != MANUAL:
                    await tree.remove(ContextPack.of(self._place.path, issue, run.run_id).left)
                    await tree.forget()
            except (ProviderError, OSError) as error:
                _log.warning("the checkout of %s %s stays: %s", issue, run.run_id, error)

    async def _without_ended(self, issue: IssueRef, unit: WorkUnit, by: str) -> WorkUnit:
        """Fence an active run whose job has ended without a result, such as one that was denied or cancelled."""
        run = unit.runs.get(unit.active)
        if run is None or not run.job or (state := await self.standing(run)) not in ENDED:
            return unit
        await self.store.stop(issue, run.run_id, reason=f"its job {state}", by=by)
        return await self.store.unit(issue)

    async def _end(self, run: Run, reason: str) -> None:
        """Cancel a job, and wait until no program of it can live. Raise StateError (WORK_CONFLICT).

        A job that waits and that no worker has runs none, and the worker that takes it next ends it.
        """
        if await self.standing(run) in {"", *ENDED}:
            return
        with suppress(StateError):  # it has ended by now
            await self._jobs.cancel(run.job, reason=line(reason, 200))
        waited = self.journal.clock.now() + int(STOP_S * SECOND)
        mark = await self.journal.heads_changed(0)
        self._worker.awaited.add(stream_of(run.job))
        self._worker.wake()
        try:
            while await self._may_act(run.job):
                if self.journal.clock.now() > waited:
                    problem = f"{run.job} was asked to stop and has not ended"
                    remedy = "`remit workers` shows who runs jobs; start `remit worker` if none does."
                    raise StateError(problem, code=Code.WORK_CONFLICT, remedy=remedy)
                mark = await heads_changed_within(self.journal, mark, _LOOK_S)
        finally:
            self._worker.awaited.discard(stream_of(run.job))

    async def _may_act(self, job: str) -> bool:
        row = await self._jobs.row(job)
        return row.state not in ENDED and bool(row.worker or row.state == "running")

    async def write(self, issue: IssueRef, by: str) -> None:
        """Write the comments that are queued for an issue, each once."""
        for trigger in sorted((await self.store.unit(issue)).unwritten):
            comment = await self.store.comment(issue, trigger)
            if comment is not None:
                comment_args = {"issue_ref": str(issue), "trigger": trigger, "body": comment.body}
                await self.call("outbox.comment", comment_args, by)

    async def call(self, tool: str, args: dict[str, Any], by: str, key: str = "") -> dict[str, Any]:
        """Call a tool of the outbox through the gate. Raise NotFoundError or StateError with what to do."""
        sessions = self._sessions()
        session = await sessions.open("cli", principal=by or self._principal, client="work")
        outcome = await sessions.call(session, tool, args, principal=by or self._principal, key=key)
        if outcome.status == "ok":
            value: dict[str, Any] = outcome.value
            return value
        code = Code.recorded(outcome.code, Code.TOOL_EXEC_FAILED)
        if outcome.cause == Code.not_found.name:
            raise NotFoundError(outcome.reason, code=Code.not_found, remedy=outcome.remedy)
        raise StateError(f"{tool}: {outcome.reason.removeprefix(f'{tool}: ')}", code=code, remedy=outcome.remedy)


async def _require_commit(repository: Path) -> None:
    """Raise UsageError (env_unavailable) for a folder in which no run could begin, before one is recorded."""
    from remit.process.git import commit_of  # noqa: PLC0415 - who looks runs no git

    try:
        commit = await commit_of(repository, "HEAD")
    except ProviderError as error:
        raise UsageError(str(error), code=Code.env_unavailable, remedy="Install git.") from error
    if await commit_of(repository, "refs/heads/run"):
        reason = f"{repository} has a branch `run`, so that there is no place for the branches of runs, run/…"
        raise UsageError(reason, code=Code.env_unavailable, remedy="git branch --move run another-name")
    if not commit:
        reason = f"{repository} is no git repository, or has no commit to begin at"
        raise UsageError(reason, code=Code.env_unavailable, remedy='git init && git add . && git commit -m "Begin"')
