"""`remit work result`: hand in the result of a run, or adopt one that came too late."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.values import usage_error
from remit.codes import Code
from remit.errors import NotFoundError, UsageError
from remit.parts.work.commands.stage import asking, print_staged, staged_option

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.parts.work.result import WorkResult
    from remit.parts.work.stage import StagedWrite, Verb
    from remit.parts.work.store import Verdict


@click.command("result")
@click.argument("issue")
@click.argument("run", required=False, default="")
@click.option("--status", type=click.Choice(["ok", "fail", "blocked"]), help="Default with --pr or --commit: ok.")
@click.option("--pr", default="", metavar="URL", help="The pull request.")
@click.option("--commit", default="", metavar="HASH", help="The commit, or its URL.")
@click.option("--tests", multiple=True, metavar="TEXT", help="Such as `make test => pass`; repeatable.")
@click.option("--summary", default="", metavar="TEXT", help="One sentence.")
@click.option("--blocked-by", multiple=True, metavar="REF", help="What blocks it; repeatable.")
@click.option(
    "--file", metavar="FILE", type=click.Path(path_type=Path), help="The result: *.json, .pb, .textproto, .txt."
)
@click.option("--adopt", is_flag=True, help="Take it although its run is no longer active; alone: the newest late one.")
@staged_option
@json_option("what Remit did with the result")
@pass_state
def command(
    state: CommandState,
    issue: str,
    run: str,
    status: str | None,
    pr: str,
    commit: str,
    tests: tuple[str, ...],
    summary: str,
    blocked_by: tuple[str, ...],
    file: Path | None,
    adopt: bool,
    staged: bool,
) -> int:
    """Hand in the result of a run that a person did, or adopt one that was archived.

    RUN is the active one unless you name another, whose result is archived. An issue without a pull request or a commit
    is blocked, and not put up for review.
    """
    from remit.parts.work.envelope import said_by_hand
    from remit.parts.work.forms import form_of

    status = status or ("ok" if pr or commit else None)
    if (status is not None and file is not None) or not (status or file or adopt):
        remedy = "Give --pr or --commit, --status, --file, or --adopt for a result that was archived."
        raise UsageError("it is not clear which result is meant", remedy=remedy)

    async def hand_in(remit: Opened) -> Verdict | list[StagedWrite]:
        work = remit.service.work
        chosen = run or await _active(remit, issue, newest=adopt)
        if file is None and status is None:
            return await passed("result", work, {"result": await _newest_late(remit, issue, chosen), "adopt": True})
        form = form_of(file.name) if file is not None else "txt"
        document = (
            _document(file)
            if file is not None
            else said_by_hand(issue, chosen, str(status), pr, commit, tests, summary, blocked_by)
        )
        given = {"issue_ref": issue, "run_id": chosen, "document": document, "form": form, "adopt": adopt}
        return await passed("submit", work, given)

    async def passed(verb: Verb, work: Any, given: dict[str, Any]) -> Verdict | list[StagedWrite]:
        done = work.staged(verb, msgspec.to_builtins(given)) if staged else getattr(work, verb)(**given)
        verdict: Verdict | list[StagedWrite] = await done
        return verdict

    verdict = state.ask(asking(state, hand_in), writes=not staged)
    if isinstance(verdict, list):
        return print_staged(state, verdict)
    became = "accepted" if verdict.accepted else f"archived ({verdict.code})"
    state.show(verdict, lambda state, _: state.output.out.line(f"{became}; {issue} is {verdict.state}"))
    return exit_codes.OK if verdict.accepted else exit_codes.FAILED


def _document(file: Path) -> bytes:
    from remit.parts.work.document import MAX_DOCUMENT

    with usage_error(f"--file {file}", "Name a file."), file.open("rb") as opened:
        return opened.read(MAX_DOCUMENT + 1)


async def _active(remit: Opened, issue: str, *, newest: bool) -> str:
    """Return the run that is meant if none is named: the active one; to adopt, else the newest."""
    unit = await remit.service.work.view(issue)
    run: str = unit.active or (unit.runs[0].run_id if newest and unit.runs else "")
    if not run:
        remedy = "Name a run of `remit work show`, and --adopt to take its result."
        raise NotFoundError(f"no run of {issue} is active", code=Code.WORK_NOT_FOUND, remedy=remedy)
    return run


async def _newest_late(remit: Opened, issue: str, run: str) -> WorkResult:

    late: list[WorkResult] = await remit.service.work.late(issue, run)
    if not late:
        raise NotFoundError(f"no result of {run} came too late", code=Code.WORK_NOT_FOUND)
    return late[-1]
