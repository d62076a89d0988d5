"""The control plane: it looks at the issues of every group, and takes the next step of each.

One process at a time is it: the one that holds the lease of `control/work`. Each turn is decided from the journal and
the forge alone, so that the next one goes on where a process that died stopped. Runs are jobs, which any
worker carries out; what is written to issues passes the gate. Looking at a forge is recorded nowhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.capability import Upkeep
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import ProviderError, RemitError, StateError
from remit.jobs.state import ENDED
from remit.journal.leases import heads_changed_within
from remit.parts.work.kinds import WorkControlled
from remit.parts.work.references import IssueRef
from remit.parts.work.runs import STUCK, ProjectRuns, RunOrder
from remit.parts.work.store import UnitRow
from remit.parts.work.unit import MAX_RETRIES, Run, State, WorkUnit, dependencies_in, parent_in, rest_after, urgency
from remit.parts.work.views import Turn, TurnStep
from remit.parts.work.workflow import IssueGroup, Workflow, read_workflow, require_workflow
from remit.tasks import first

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.parts.work.outbox.port import Forge, Issue
    from remit.parts.work.workflow import OutboxTable
    from remit.settings import Settings

_log: Final = logging.getLogger("remit.work")
STREAM: Final = "control/work"
KIND: Final = "control"
PROBE: Final = "work.control"
"""The control plane of this process, as readiness shows it."""
_REST_S: Final = 30.0
"""Seconds until something that failed is tried again."""
_LOOK_S: Final = 5.0
_SPACING_S: Final = 0.1
_MOST: Final = 10_000
_OPEN: Final[tuple[State, ...]] = ("todo", "doing", "review", "blocked", "needs-human")
TIMEOUT: Final = "timeout"
CHANGES: Final = "changes requested"


class _Listed(NamedTuple):
    """An open issue, and the group that works on it."""

    group: str
    issue: Issue


class ControlPlane:
    """Hands out the issues of one project."""

    def __init__(
        self, runs: ProjectRuns, project: Callable[[], tuple[OutboxTable, Forge]], settings: Settings, principal: str
    ) -> None:
        self._runs = runs
        self._store = runs.store
        self._journal = runs.journal
        self._project = project
        self._settings = settings
        self._principal = principal
        self._resting: dict[str, float] = {}
        """Until when issues are left alone."""
        self._questions: set[tuple[str, str]] = set()
        """Results that a person was asked about; the journal knows, and this saves a look."""
        self._list: tuple[float, dict[str, _Listed]] | None = None
        """The last list of a forge, and its time."""

    # --- the loop

    async def run(self, stop: asyncio.Event, tell: Callable[[Turn], None]) -> None:
        """Be the control plane until `stop`, once no other process is. Raise RemitError or ProviderError."""
        await first(self._lead(stop, tell), stop.wait())

    async def _lead(self, stop: asyncio.Event, tell: Callable[[Turn], None]) -> None:
        while not stop.is_set():
            from remit.service.calls import TurnTaking  # noqa: PLC0415 - who looks takes no turn

            async with TurnTaking(self._journal).held(STREAM, KIND, WorkControlled()) as held:
                while await held.current() is not None:
                    mark = await self._journal.heads_changed(0)
                    tell(await self._turn(staged=False))
                    await self._journal.clock.sleep(_SPACING_S)
                    await heads_changed_within(self._journal, mark, _LOOK_S)

    async def turn(self, *, staged: bool) -> Turn:
        """Take one turn, unless another process is the control plane. Raise UsageError (WORK_INVALID)."""
        require_workflow(self._settings)
        if staged:
            return await self._turn(staged=True)
        from remit.service.calls import TurnTaking  # noqa: PLC0415 - who looks takes no turn

        turns = TurnTaking(self._journal)
        await turns.begin(STREAM, KIND, WorkControlled())
        async with turns.taken(STREAM, KIND) as held:
            return Turn(steps=[], leads=False) if held is None else await self._turn(staged=False)

    # --- one turn

    async def _turn(self, *, staged: bool) -> Turn:
        workflow = require_workflow(self._settings)
        steps = _Steps(staged=staged, resting=self._resting, now=self._journal.clock.monotonic)
        try:
            listed = await self._listed(workflow)
        except ProviderError as error:
            remedy = "Correct [outbox] in workflow.toml, or try again once the forge answers."
            raise StateError(str(error), code=error.cause or Code.env_unavailable, remedy=remedy) from error
        under_way = await self._rows()
        for row in under_way:
            await self._tend(workflow, row, steps)
        for row in await self._rows(listed):
            if row.issue_ref in listed:
                await self._follow(workflow, row, listed[row.issue_ref].issue, steps)
        rows = {row.issue_ref: row for row in await self._rows(listed)}
        for name, group in workflow.groups.items():
            await self._dispatch(workflow, name, group, listed, rows, steps)
        return Turn(steps=steps.taken, active=sum(bool(row.run_id) for row in under_way))

    async def _listed(self, workflow: Workflow) -> dict[str, _Listed]:
        """Return the open issues of every group; those of a forge are looked for once in a while."""
        table, forge = self._project()
        now = self._journal.clock.monotonic()
        if self._list is not None and table.backend != "local" and now - self._list[0] < table.poll_seconds:
            return self._list[1]
        listed: dict[str, _Listed] = {}
        for name, group in workflow.groups.items():
            for issue in await forge.list_issues(labels=group.listen_labels, limit=_MOST):
                listed.setdefault(issue.issue_ref, _Listed(name, issue))
        self._list = (now, listed)
        return listed

    async def _rows(self, also: Iterable[str] = ()) -> list[UnitRow]:
        """Return the units that are not done, and these issues' in any state."""
        rows = await self._store.page(states=_OPEN, limit=_MOST)
        known = {row.issue_ref for row in rows}
        more = [await self._store.row(IssueRef.parse(reference)) for reference in also if reference not in known]
        return [*rows, *(row for row in more if row is not None)]

    # --- what is under way

    async def _tend(self, workflow: Workflow, row: UnitRow, steps: _Steps) -> None:
        """Look after a run that a group has under way, and after comments that its process left behind."""
        issue = IssueRef.parse(row.issue_ref)
        if not row.run_id:
            if row.unwritten and not await self._works_on(issue):
                await steps.take(row, "write", "", lambda: self._runs.write(issue, ""))
            return
        unit = await self._store.unit(issue)
        run = unit.runs.get(unit.active)
        if run is None or not run.job:
            return
        state = await self._runs.standing(run)
        group = workflow.groups.get(row.group)
        over = group is not None and 0 < group.timeout_seconds * SECOND < self._journal.clock.now() - run.started_at
        if not state:
            await steps.take(row, "resume", run.run_id, lambda: self._runs.carry_out(issue, run, workflow))
        elif state in {STUCK, *ENDED}:
            await steps.take(row, "stop", f"its job {state}", lambda: self._give_up(issue, unit, f"its job {state}"))
        elif over:
            await steps.take(row, "stop", TIMEOUT, lambda: self._give_up(issue, unit, TIMEOUT))

    async def _give_up(self, issue: IssueRef, unit: WorkUnit, reason: str) -> None:
        """Fence a run that gave no result, end it, and ask a person after several of them."""
        await self._runs.stop(issue, reason, self._principal)
        stuck = reason.endswith(STUCK)
        if stuck or _in_vain([*unit.runs.values()]) >= MAX_RETRIES:
            problem = reason if stuck else f"{MAX_RETRIES + 1} runs ended without a result: {reason}"
            await self._store.move(issue, "needs-human", reason=problem, by=self._principal)

    # --- what people and dependencies decide

    async def _follow(self, workflow: Workflow, row: UnitRow, issue: Issue, steps: _Steps) -> None:
        """Take over what an issue's labels decide, and have them say how its work stands."""
        if row.run_id:
            return
        reference = IssueRef.parse(row.issue_ref)
        move = partial(self._store.move, reference, by=self._principal)
        state: str = row.state
        if state == "review" and "decision:reject" in issue.labels:
            await steps.take(row, "reject", CHANGES, lambda: move("todo", reason=CHANGES))
            state = "todo"
        elif state == "review" and (
            "decision:accept" in issue.labels or not workflow.flow.close_issue_requires_decision
        ):
            reason = "decision:accept" if "decision:accept" in issue.labels else "no decision is required"
            await steps.take(row, "accept", reason, lambda: self._accept(workflow, reference, reason))
            state = "done"
        elif (
            row.blocked_by
            and workflow.flow.auto_unblock_when_dependency_closed
            and not await self._waits_for(row.blocked_by)
        ):
            await steps.take(row, "unblock", " ".join(row.blocked_by), lambda: move("todo"))
            state = "todo"
        elif state == "review" and workflow.flow.ask_for_decision:
            await self._ask(row, reference, steps)
        await self._label(row, issue, state, steps)

    async def _ask(self, row: UnitRow, issue: IssueRef, steps: _Steps) -> None:
        """Have a person asked about a result, once for each."""
        last = next(reversed((await self._store.unit(issue)).results), "")
        if last and (row.issue_ref, last) not in self._questions and not await self._runs.is_asked(issue, last):
            await steps.take(row, "ask", last, lambda: self._runs.ask(issue, last))
        self._questions.add((row.issue_ref, last))

    async def _accept(self, workflow: Workflow, issue: IssueRef, reason: str) -> None:
        await self._store.move(issue, "done", reason=reason, by=self._principal)
        await self._runs.clean(issue, workflow)

    async def _label(self, row: UnitRow, issue: Issue, state: str, steps: _Steps) -> None:
        """Have the labels of an issue say its state, and close it if it is done."""
        gone = ("state:", "decision:reject") if state in {"todo", "doing"} else ("state:",)
        labels = [label for label in issue.labels if not label.startswith(gone)]
        if state == "todo" and len(labels) == len(issue.labels):
            return  # it says nothing else
        wanted = sorted([*labels, f"state:{state}"])
        if wanted == sorted(issue.labels) and (state != "done" or issue.state == "closed"):
            return
        if await self._works_on(IssueRef.parse(row.issue_ref)):
            return  # its job says so itself
        args: dict[str, Any] = {"issue_ref": row.issue_ref, "labels": wanted}
        if state == "done":
            args["closed"] = True
        key = f"label:{row.issue_ref}:{state}:{row.updated_at}:{issue.read_up_to}"[:200]
        await steps.take(row, "label", f"state:{state}", lambda: self._runs.call("outbox.mutate", args, "", key))
        self._list = None

    async def _works_on(self, issue: IssueRef) -> bool:
        """Return whether the job of the last run has not ended: it writes its own comment and labels."""
        last = (await self._store.unit(issue)).last
        return last is not None and bool(last.job) and await self._runs.standing(last) not in {"", *ENDED}

    async def _waits_for(self, references: Iterable[str]) -> list[str]:
        """Return those of these issues that are open."""
        return [reference for reference in references if not await self._is_closed(IssueRef.parse(reference))]

    async def _is_closed(self, issue: IssueRef) -> bool:
        row = await self._store.row(issue)
        if row is not None and row.state == "done":
            return True
        try:
            return (await self._project()[1].get_issue(issue)).state == "closed"
        except ProviderError as error:
            if error.cause is not Code.not_found:
                raise
            return False

    # --- what begins

    async def _dispatch(
        self,
        workflow: Workflow,
        name: str,
        group: IssueGroup,
        listed: dict[str, _Listed],
        rows: dict[str, UnitRow],
        steps: _Steps,
    ) -> None:
        """Start runs until the group has as many as it may; issues that wait for others are blocked."""
        room = group.max_concurrent - sum(row.group == name and bool(row.run_id) for row in rows.values())
        waiting = [
            issue
            for reference, (of, issue) in listed.items()
            if of == name
            and ((row := rows.get(reference)) is None or (row.state in {"todo", "doing"} and not row.run_id))
        ]
        for issue in sorted(waiting, key=lambda unit: (urgency(unit.labels), IssueRef.parse(unit.issue_ref).number)):
            if room <= 0:
                return
            if steps.rests(issue.issue_ref):
                continue
            room -= await self._begin(workflow, name, group, issue, steps)

    async def _begin(self, workflow: Workflow, name: str, group: IssueGroup, issue: Issue, steps: _Steps) -> bool:
        """Start a run of an issue, or block it; return whether a run began."""
        reference = IssueRef.parse(issue.issue_ref)
        whole = issue if issue.body else await self._project()[1].get_issue(reference)
        needed = [str(dependency) for dependency in dependencies_in(whole.body, reference.project)]
        open_ones = await self._waits_for(needed) if workflow.flow.auto_block_when_dependency_open else []
        if open_ones:
            await steps.take(issue, "block", " ".join(open_ones), lambda: self._block(whole, tuple(open_ones)))
            return False
        unit = await self._store.unit(reference) if await self._store.row(reference) is not None else WorkUnit()
        if self._rests(unit):
            return False
        executor, reason = _next(workflow, group, unit)
        wanted = RunOrder(executor=executor, role=group.role, reason=reason, by=self._principal, group=name)
        return await steps.take(issue, "start", executor, lambda: self._runs.start(reference, workflow, wanted))

    def _rests(self, unit: WorkUnit) -> bool:
        """Return whether the last run lacked its environment a moment ago."""
        ended_at = unit.last.ended_at if unit.last is not None else 0
        return self._journal.clock.now() < ended_at + rest_after(unit.lacked) * SECOND

    async def _block(self, issue: Issue, blocked_by: tuple[str, ...]) -> None:
        reference = IssueRef.parse(issue.issue_ref)
        await self._store.open(reference, issue.title, self._principal, parent_in(issue.body, reference.project))
        reason = f"waits for {', '.join(blocked_by)}"
        await self._store.move(reference, "blocked", reason=reason, by=self._principal, blocked_by=blocked_by)


class _Steps:
    """The steps of a turn: taken, or only said."""

    def __init__(self, *, staged: bool, resting: dict[str, float], now: Callable[[], float]) -> None:
        self.taken: list[TurnStep] = []
        self._staged = staged
        self._resting = resting
        self._now = now

    def rests(self, issue_ref: str) -> bool:
        """Return whether an issue is left alone, for a step of it failed a moment ago."""
        return self._now() < self._resting.get(issue_ref, 0.0)

    async def take(
        self, about: Issue | UnitRow, action: Any, detail: str, act: Callable[[], Awaitable[object]]
    ) -> bool:
        """Take a step, and note it; return whether it was taken. What fails rests for a while."""
        if self.rests(about.issue_ref):
            return False
        step = TurnStep(issue_ref=about.issue_ref, action=action, detail=detail)
        self.taken.append(step)
        if self._staged:
            return True
        try:
            await act()
        except (RemitError, ProviderError) as error:
            step.error = getattr(error, "message", "") or str(error)
            self._resting[about.issue_ref] = self._now() + _REST_S
            return False
        return True


def _next(workflow: Workflow, group: IssueGroup, unit: WorkUnit) -> tuple[str, str]:
    """Return who works on an issue next, and why it is not the first one."""
    last = unit.last
    if last is None:
        return group.executor, ""
    reason = unit.reason or f"after {last.run_id}"
    other = workflow.executor_name(group.switch_to or group.executor)
    switched = reason in {TIMEOUT, CHANGES} or (last.executor == other and last.group)
    return (other if switched else group.executor), reason


def _in_vain(runs: list[Run]) -> int:
    """Return how many runs before the last one ended without a result, one after another."""
    count = 0
    for run in reversed(runs[:-1]):
        if run.standing != "stopped" or not (run.reason == TIMEOUT or run.reason.startswith("its job")):
            break
        count += 1
    return count


# --- beside a server


def work_on_issues(remit: Remit, stop: asyncio.Event, role: str) -> Upkeep | None:
    """Return what hands out issues beside a server; None where workflow.toml has no groups."""
    is_here = role == "serve" and bool(read_workflow(remit.settings).groups)
    return control_of(remit, stop) if is_here else None


def control_of(remit: Remit, stop: asyncio.Event, follow: Callable[[Turn], object] = lambda _: None) -> Upkeep:
    """Return what is the control plane until `stop`; `follow` is told of each turn."""
    control: ControlPlane = remit.service.work.control

    async def run(tell: Callable[[str], object]) -> None:
        def told(turn: Turn) -> None:
            failed = next((step for step in turn.steps if step.error), None)
            tell(f"{failed.issue_ref}: {failed.error}" if failed is not None else "")
            follow(turn)

        await control.run(stop, told)

    return Upkeep(PROBE, run)
