"""How jobs were left, for people and for programs: result, error, or what somebody has to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from remit.cli import exit_codes
from remit.cli.errors import Failure, show
from remit.cli.text import one_line
from remit.codes import Code
from remit.jobs.state import UNDO_DECISION
from remit.journal.kinds import ErrorInfo, JobCancelled, JobFailed
from remit.redact import mask

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.context import State
    from remit.cli.watch import Followed
    from remit.service.views import OpenWait


class Left(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a job was left; this is what `--json` prints."""

    job: str
    state: str
    result: Any = msgspec.UNSET
    error: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    waiting_for: str = ""
    waits: tuple[dict[str, Any], ...] = ()


async def left(remit: Remit, job: Followed) -> Left:
    """How a job was left."""
    row = job.row
    waits = tuple(msgspec.to_builtins(wait) for wait in job.waits)
    if row.state == "completed":
        return Left(job=job.job, state=row.state, result=await remit.service.jobs.result(job.job))
    error = _error(job)
    return Left(
        job=job.job,
        state=row.state,
        error=_shown(error) if error else msgspec.UNSET,
        waiting_for=row.waiting_for,
        waits=waits,
    )


def status(jobs: Iterable[Followed]) -> int:
    """The exit status for jobs: the worst of theirs."""
    worst = (exit_codes.FAILED, exit_codes.WAITING, exit_codes.CANCELLED)
    found = {exit_codes.of_state(job.row.state) for job in jobs}
    return next((one for one in worst if one in found), exit_codes.OK)


def present(state: State, jobs: Sequence[Followed], ends: Sequence[Left]) -> None:
    """Print how jobs were left: results on stdout, everything else on stderr."""
    if state.as_json:
        state.output.json(ends[0] if len(ends) == 1 else ends)
        return
    for job, end in zip(jobs, ends, strict=True):
        if len(jobs) > 1:
            state.output.out.line(f"{job.job}  {job.row.state}")
        if end.result is not msgspec.UNSET:
            _result(state, end.result)
        elif job.row.state == "waiting":
            waiting(state, job)
        elif isinstance(end.error, dict):
            failed(state, job.job, end.error)


def waiting(state: State, job: Followed) -> None:
    """Say on stderr what a job waits for, and with which commands to go on."""
    err = state.output.err
    if job.stuck:
        failed(state, job.job, _shown(_error(job) or ErrorInfo(code=job.row.code)))
    for wait in job.waits:
        err.line(f"{job.job} waits for {one_line(_words(wait))}")
        for command in _commands(state, job.job, wait):
            err.line(f"  {err.style('->', 'cyan')} {command}")
    resume = state.command("resume", job.job)
    err.line(f"  {err.style('->', 'cyan')} " + (f"then: {resume}" if job.waits else resume))


def _words(wait: OpenWait) -> str:
    if wait.type == "signal":
        return f"the signal {wait.key}"
    if wait.type == "timer":
        return "a timer"
    if wait.attempt or wait.key == UNDO_DECISION:
        return f"a decision on step {wait.step}: {wait.reason}"
    return f"an answer: {wait.reason}" if wait.reason != "approval" else f"approval of step {wait.step}"


def _commands(state: State, job: str, wait: OpenWait) -> list[str]:
    if wait.type == "signal":
        return [state.command("signal", job, wait.key) + " [PAYLOAD]"]
    if wait.type != "human":
        return []
    if wait.attempt or wait.key == UNDO_DECISION:
        seen = ("--attempt", str(wait.attempt)) if wait.attempt else ()
        return [state.command("decide", job, wait.step, *seen) + " --done VALUE | --retry | --fail"]
    return [state.command("confirm", wait.key)]


def _result(state: State, result: Any) -> None:
    out = state.output.out
    report = result.get("report") if isinstance(result, dict) else None
    if isinstance(report, str):
        out.raw(report)
    else:
        out.raw(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())


def failed(state: State, job: str, error: dict[str, str]) -> None:
    """Print why a job failed or cannot go on."""
    step = error.get("step", "")
    where = f"{job} step {step}" if step else job
    # What a tool says of its failure may quote what it was given.
    message = mask(f"{where}: {error.get('message', '')}")
    show(Failure(error["code"], message, error.get("remedy", ""), exit_codes.FAILED), state.output)


def _error(job: Followed) -> ErrorInfo | None:
    end = job.history.end
    if isinstance(end, JobFailed):
        return end.error
    if isinstance(end, JobCancelled):
        why = f": {end.reason}" if end.reason else ""
        return ErrorInfo(code=Code.JOB_CANCELLED.name, message=f"cancelled by {end.by or 'somebody'}{why}")
    return job.stuck_by if job.stuck else None


def _shown(error: ErrorInfo) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "remedy": error.remedy, "step": error.step}
