"""Work in the console: a board by state, and one issue with its runs, results, comments and late results."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from remit.pages.page import Nothing, Page, PageRequest, PageView, See, link
from remit.parts.work.envelope import said_by_hand
from remit.parts.work.noun import WorkNoun
from remit.parts.work.result import WorkResult
from remit.parts.work.store import UnitRow
from remit.parts.work.unit import STATES, Run, State
from remit.parts.work.views import UnitView

_COLUMN: Final = 20
"""Issues of a column of the board."""
_PAGE: Final = 50
_TONES: Final[dict[State, str]] = {
    "todo": "quiet",
    "doing": "busy",
    "review": "",
    "blocked": "bad",
    "needs-human": "bad",
    "done": "quiet",
}


class IssuesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which issues: this is what stands in the address."""

    state: State | None = None
    """Without one, all states stand beside each other."""
    before: str = ""
    """Continue after this issue of an earlier page."""


class IssueColumn(msgspec.Struct, frozen=True, kw_only=True):
    """The newest issues in a state."""

    state: State
    tone: str
    rows: tuple[UnitRow, ...]
    more: bool


class IssueBoard(PageView, frozen=True, kw_only=True):
    """Issues, newest first."""

    template: ClassVar[str] = "work.html"
    query: IssuesQuery
    columns: tuple[IssueColumn, ...]
    next: str = ""
    """Continue after this issue, if one state is shown; empty: this is all."""


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its result."""

    run: Run
    result: WorkResult | None
    late: tuple[WorkResult, ...]
    """Results that were archived."""
    comment: str
    """The comment that stands in the issue; empty: none does."""
    queued: bool
    """Whether a comment is still to be written."""


class IssueView(PageView, frozen=True, kw_only=True):
    """One issue, whole."""

    template: ClassVar[str] = "work_unit.html"
    unit: UnitView
    tone: str
    runs: tuple[RunView, ...]
    """Newest first."""
    states: tuple[State, ...]
    """States that a decision may put it into."""


class IssueDecisionForm(msgspec.Struct, frozen=True):
    """A decision about an issue."""

    state: State
    reason: str = ""


class Handed(msgspec.Struct, frozen=True):
    """What a person says of a run."""

    run: str
    status: Literal["ok", "fail", "blocked"]
    pr: str = ""
    commit: str = ""
    tests: str = ""
    """One a line, such as `make test => pass`."""
    summary: str = ""


async def board(request: PageRequest) -> IssueBoard:
    """Return the newest issues of each state; or those of one state, page by page."""
    query: IssuesQuery = request.query
    limit = _PAGE if query.state else _COLUMN
    columns = []
    following = ""
    for state in (query.state,) if query.state else STATES:
        rows = await _work(request).board(states=(state,), before=query.before, limit=limit + 1)
        shown = tuple(rows[:limit])
        columns.append(IssueColumn(state=state, tone=_TONES[state], rows=shown, more=len(rows) > limit))
        following = shown[-1].issue_ref if query.state and len(rows) > limit else ""
    return IssueBoard(title="Work", query=query, columns=tuple(columns), next=following)


async def issue(request: PageRequest) -> IssueView:
    """Return the issue's page. Raise NotFoundError or UsageError."""
    work = _work(request)
    reference = request.path["issue"]
    unit = await work.view(reference)
    runs = []
    for run in unit.runs:
        trigger = f"workrun:{run.run_id}"
        runs.append(
            RunView(
                run=run,
                result=unit.results.get(run.run_id),
                late=tuple(await work.late(reference, run.run_id)) if run.late else (),
                comment=unit.written.get(trigger, ""),
                queued=trigger in unit.unwritten,
            )
        )
    state = next(known for known in STATES if known == unit.state)
    states = () if unit.active else tuple(known for known in STATES if known not in {state, "doing"})
    return IssueView(title=reference, unit=unit, tone=_TONES[state], runs=tuple(runs), states=states)


async def moved(request: PageRequest) -> object:
    """Return what stays equal while nothing happens to the issue."""
    return (await issue(request)).runs, await _work(request).view(request.path["issue"])


async def decide(request: PageRequest) -> See:
    """Put an issue into a state."""
    form: IssueDecisionForm = request.form
    await _work(request).decide(request.path["issue"], form.state, reason=form.reason, by=request.principal)
    return See(link("/work/{}", request.path["issue"]))


async def hand_in(request: PageRequest) -> See:
    """Hand in the result of the active run, which a person does."""
    form: Handed = request.form
    reference = request.path["issue"]
    tests = [line for line in form.tests.splitlines() if line.strip()]
    result = said_by_hand(reference, form.run, form.status, form.pr, form.commit, tests, form.summary)
    await _work(request).submit(reference, form.run, result, "txt", by=request.principal)
    return See(link("/work/{}", reference))


async def stop(request: PageRequest) -> See:
    """Stop the active run."""
    await _work(request).stop(request.path["issue"], "stopped in the console", by=request.principal)
    return See(link("/work/{}", request.path["issue"]))


def _work(request: PageRequest) -> WorkNoun:
    work: WorkNoun = request.service.work
    return work


PAGES: Final = (
    Page(
        path="/work",
        scope="read",
        handler=board,
        name="Work",
        key="b",
        under="Work",
        about="issues that are worked on, by state",
        query=IssuesQuery,
        live="heads",
    ),
    Page(path="/work/{issue}", scope="read", handler=issue, live="events", mark=moved),
    Page(path="/work/{issue}/decide", scope="decide", handler=decide, form=IssueDecisionForm),
    Page(path="/work/{issue}/result", scope="call", handler=hand_in, form=Handed),
    Page(path="/work/{issue}/stop", scope="decide", handler=stop, form=Nothing),
)
