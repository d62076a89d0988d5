"""`remit work result`: hand in the result of a run, or adopt one that came too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.cli.opened import Opened
    from remit.work.result import WorkResult
    from remit.work.store import Verdict


@click.command("result")
@click.argument("issue")
@click.argument("run")
@click.option("--status", type=click.Choice(["ok", "fail", "blocked"]), help="The result.")
@click.option("--pr", default="", metavar="URL", help="The pull request.")
@click.option("--commit", default="", metavar="HASH", help="The commit, or its URL.")
@click.option("--tests", multiple=True, metavar="TEXT", help="Such as `make test => pass`; repeatable.")
@click.option("--summary", default="", metavar="TEXT", help="One sentence.")
@click.option("--blocked-by", multiple=True, metavar="REF", help="What blocks it; repeatable.")
@click.option("--adopt", is_flag=True, help="Take the newest result that came when the run was no longer active.")
@json_option("what Remit did with the result")
@pass_state
def command(
    state: State,
    issue: str,
    run: str,
    status: str | None,
    pr: str,
    commit: str,
    tests: tuple[str, ...],
    summary: str,
    blocked_by: tuple[str, ...],
    adopt: bool,
) -> int:
    """Hand in the result of a run that a person did, or adopt one that was archived.

    The result of a run that is not the active one is archived. An issue without a pull request or a commit is blocked,
    and not put up for review.
    """
    if adopt == (status is not None):
        raise UsageError("give --status, or --adopt for a result that was archived", remedy="One of the two.")
    rows = [
        *(("IssueRef", issue), ("RunId", run), ("Status", status or ""), ("PR", pr or "none")),
        *(("Commit", commit or "none"), *(("Tests", test) for test in tests or ("n/a",))),
        *(("Summary", summary or "Handed in by hand."), ("BlockedBy", ", ".join(blocked_by) or "none")),
    ]
    text = "\n".join(f"{key}: {value}" for key, value in rows)

    async def hand_in(remit: Opened) -> Verdict:
        work = remit.service.work
        result = await _newest_late(remit, issue, run) if adopt else _read(text)
        verdict: Verdict = await work.result(result, adopt=adopt)
        return verdict

    verdict = state.ask(hand_in, writes=True)
    if state.as_json:
        state.output.json(verdict)
    else:
        became = "accepted" if verdict.accepted else f"archived ({verdict.code})"
        state.output.out.line(f"{became}; {issue} is {verdict.state}")
    return exit_codes.OK if verdict.accepted else exit_codes.FAILED


def _read(text: str) -> WorkResult:
    from remit.work.envelope import read_envelope

    return read_envelope(text.encode())


async def _newest_late(remit: Opened, issue: str, run: str) -> WorkResult:
    from remit.codes import Code
    from remit.errors import NotFoundError

    late: list[WorkResult] = await remit.service.work.late(issue, run)
    if not late:
        raise NotFoundError(f"no result of {run} came too late", code=Code.WORK_NOT_FOUND)
    return late[-1]
