"""What becomes of a result that lacks its run, its change, or its tests: each rule of the protocol, one row each."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest

from remit.codes import Code
from remit.errors import RemitError
from tests.parts.work.conftest import Project

COMMIT, PR, TESTS = "Commit: 4f2c1d9", "PR: https://git.example/o/r/pull/4", "Tests: make test => pass"
FAILING: Final = "Tests: make test => fail"


class Row(NamedTuple):
    """Lines of a result beside its issue, and the state that the issue is in after it."""

    lines: tuple[str, ...]
    state: str
    asks: str = ""
    """What is asked for, in the error or as the next step; empty: nothing."""


RUN: Final = "RunId: @RUN@"
ROWS: Final = {
    "all of it": Row((RUN, "Status: ok", PR, COMMIT, TESTS), "review"),
    "a pull request alone": Row((RUN, "Status: ok", PR, "Commit: none", TESTS), "review"),
    "a commit alone": Row((RUN, "Status: ok", "PR: none", COMMIT, TESTS), "review"),
    "no test to run": Row((RUN, "Status: ok", COMMIT, "Tests: n/a"), "review"),
    "neither": Row((RUN, "Status: ok", TESTS), "blocked", "changes"),
    "neither, in words": Row((RUN, "Status: ok", "PR: none", "Commit: NONE", TESTS), "blocked", "changes"),
    "no word about tests": Row((RUN, "Status: ok", COMMIT), "blocked", "tests"),
    "neither, and it failed": Row((RUN, "Status: fail", FAILING), "doing"),
    "neither, and it is blocked": Row((RUN, "Status: blocked", "BlockedBy: local#9", "Tests: n/a"), "blocked"),
    "no run": Row(("Status: ok", COMMIT, TESTS), "doing", "RunId"),
    "no run, in words": Row(("RunId: none", "Status: ok", COMMIT, TESTS), "doing", "RunId"),
    "no status": Row((RUN, COMMIT, TESTS), "doing", "Status"),
    "another run": Row(("RunId: 2026-02-14-work-0099", "Status: ok", COMMIT, TESTS), "doing", "2026-02-14-work-0099"),
}


@pytest.mark.slow
@pytest.mark.parametrize("by_hand", [True, False], ids=["handed in", "left by a program"])
async def test_what_a_result_lacks_decides_how_far_its_issue_gets(project: Project, *, by_hand: bool) -> None:
    for name, row in ROWS.items():
        issue = await project.work.issue(name)
        if by_hand:
            await _handed_in(project, issue, row)
        elif row.asks not in {"changes", "tests"}:  # the adapter itself sees commits, and runs tests
            await _left(project, issue, row)
        else:
            continue
        unit = await project.work.view(issue)
        assert len(await project.comments(issue)) == len(unit.results), name


async def _handed_in(project: Project, issue: str, row: Row) -> None:
    run = (await project.work.start(issue, "manual")).run_id
    text = "\n".join((f"IssueRef: {issue}", *row.lines, "", "I did it.")).replace("@RUN@", run)
    if row.asks and row.state == "doing":
        with pytest.raises(RemitError) as refused:
            await project.work.submit(issue, run, text.encode(), "txt")
        assert refused.value.code is Code.WORK_INVALID
        assert row.asks in refused.value.message
        assert (await project.work.view(issue)).active == run, "it is asked for again"
        return
    verdict = await project.work.submit(issue, run, text.encode(), "txt")
    assert (verdict.accepted, verdict.state) == (True, row.state)
    (comment,) = await project.comments(issue)
    assert not row.asks or f"lacks: {row.asks}" in comment


async def _left(project: Project, issue: str, row: Row) -> None:
    """Have a program leave the text; the adapter sees its commit, and an acceptance command that passes."""
    (project.folder / "leave.txt").write_text("\n".join((f"IssueRef: {issue}", *row.lines, "", "I did it.")))
    unit = await project.ended(await project.work.start(issue, "leave"))
    if row.asks:
        assert (unit.state, unit.results, unit.active) == ("needs-human", {}, "")
        assert unit.runs[0].code == "output_unparseable"
        assert row.asks in unit.reason or "no run" in unit.reason
    else:
        assert unit.state == row.state
