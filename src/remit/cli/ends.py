"""The state in which jobs were left, for people and for programs: result, error, or what someone has to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.cli import exit_codes
from remit.cli.context import MEMORY
from remit.cli.errors import ErrorText, show
from remit.cli.output import one_line
from remit.cli.tables import moment
from remit.codes import Code
from remit.jobs.branch import OWN_LIMIT
from remit.jobs.state import TURN, UNDO_DECISION
from remit.record.views import TaskError
from remit.redact import mask

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.cli.context import CommandState
    from remit.record.job_story import JobStory
    from remit.record.views import JobView, OpenWait

    End = JobStory | JobView
    """The state in which a job was left; the view holds all of it, which is what `--json` prints."""


_PARTED: Final = frozenset({Code.NONDETERMINISTIC.name, Code.EXECUTION_VERSION_MISMATCH.name})
"""Codes of jobs whose code is not that of their record: a replay shows where they part."""
_RAN: Final = {"status", "exit_code", "signal", "limit", "stdout", "stderr", "truncated", "receipt"}
"""Fields of the result of code that ran in the sandbox; `--json` has all of it."""
_STUCK: Final = {
    Code.NONDETERMINISTIC.name: "Run the code that recorded this job, or take its path where `run.version` says so.",
    Code.EXECUTION_VERSION_MISMATCH.name: "Run the code that recorded it, or declare `migrates`, or set jobs.mismatch.",
    Code.FOREIGN_TIMEOUT.name: OWN_LIMIT,
    Code.JOB_ENDS_WORKERS.name: "Find out what ends them: its last step, memory, a crash in native code.",
}
"""The remedy for a stuck job, where its record does not say."""


async def end_of(remit: Opened, job: JobStory, *, whole: bool) -> End:
    """Return how a job was left, with its result."""
    if whole:
        return await remit.service.jobs.view(job.job)
    if job.row.state == "completed":
        job.result = await remit.service.jobs.result(job.job)
    return job


def status(jobs: Iterable[End]) -> int:
    """The exit status for jobs: the worst of theirs."""
    worst = (exit_codes.ERROR, exit_codes.FAILED, exit_codes.WAITING, exit_codes.CANCELLED)
    codes = {exit_codes.ERROR if job.row.stuck else exit_codes.of_state(job.row.state) for job in jobs}
    return next((code for code in worst if code in codes), exit_codes.OK)


def present(state: CommandState, jobs: Sequence[End]) -> None:
    """Print how jobs were left: results on stdout, everything else on stderr."""
    if state.as_json:
        state.output.json(jobs[0] if len(jobs) == 1 else jobs)
        return
    for job in jobs:
        if len(jobs) > 1:
            state.output.out.line(f"{job.job}  {job.row.state}")
        if job.row.state == "completed":
            _result(state, job.job, job.result)
        elif job.row.state == "waiting":
            waiting(state, job)
        elif job.error is not None:
            failed(state, job.job, job.error)


def waiting(state: CommandState, job: End) -> None:
    """Say on stderr what a job waits for, and with which commands to go on."""
    err = state.output.err
    if job.row.stuck:
        _stuck(state, job)
        return
    if state.settings().journal.url == MEMORY:
        err.line(f"{job.job} waits, but its journal was in memory and is gone: a job that is to continue needs a file")
        return
    for wait in job.waits:
        err.line(f"{job.job} waits for {one_line(_words(wait))}")
        if wait.idempotency_key:
            err.line(f"  it was sent with the idempotency key {one_line(wait.idempotency_key)}")
        for command in _commands(state, job.job, wait):
            err.line(f"  {err.style('->', 'cyan')} {command}")
    resume = state.command("resume", job.job)
    err.line(f"  {err.style('->', 'cyan')} " + (f"then: {resume}" if job.waits else resume))


def _stuck(state: CommandState, job: End) -> None:
    """Return why no code here can continue a job; no signal and no answer helps it until that has changed."""
    err, code = state.output.err, job.row.code
    error = job.error or TaskError(code=code, message="")
    failed(state, job.job, msgspec.structs.replace(error, remedy=error.remedy or _STUCK.get(code, "")))
    err.line(f"{job.job} is stuck: it keeps what is recorded, and goes on once this is put right")
    looks = ("replay",) if code in _PARTED else ("show", "trace")
    commands = [state.command(look, job.job) for look in looks]
    file = job.module if code == Code.UNKNOWN_RECIPE.name else ""
    commands += [
        f"then: {state.command('resume', job.job, module=file)}",
        f"or give it up: {state.command('cancel', job.job)}",
    ]
    for command in commands:
        err.line(f"  {err.style('->', 'cyan')} {command}")


def _words(wait: OpenWait) -> str:
    if wait.type == "signal":
        return f"the signal {wait.key}"
    if wait.type == "timer":
        until = f" until {moment(wait.due_at)}" if wait.due_at is not None else ""
        return f"its turn{until}: {wait.reason}" if wait.key.startswith(TURN) else f"a timer{until}"
    if wait.attempt or wait.key == UNDO_DECISION:
        return f"a decision on step {wait.step}: {wait.reason}"
    return f"an answer: {wait.reason}" if wait.reason != "approval" else f"approval of step {wait.step}"


def _commands(state: CommandState, job: str, wait: OpenWait) -> list[str]:
    if wait.type == "signal":
        return [state.command("signal", job, wait.key) + " [PAYLOAD]"]
    if wait.type != "human":
        return []
    if wait.attempt or wait.key == UNDO_DECISION:
        attempt = ("--attempt", str(wait.attempt)) if wait.attempt else ()
        return [state.command("decide", job, wait.step, *attempt) + " --done VALUE | --retry | --fail"]
    return [state.command("confirm", wait.key)]


def _result(state: CommandState, job: str, result: Any) -> None:
    out = state.output.out
    report = result.get("report") if isinstance(result, dict) else None
    if isinstance(report, str):
        out.raw(report)
    elif isinstance(result, dict) and result.keys() >= _RAN:
        _ran(state, job, result)
    else:
        out.raw(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())


def _ran(state: CommandState, job: str, result: dict[str, Any]) -> None:
    """Print what code in the sandbox wrote, each stream on its own, and how it ended if it failed."""
    output = state.output
    for channel, text in ((output.out, result["stdout"]), (output.err, result["stderr"])):
        if text:
            channel.raw(text.removesuffix("\n"))
    if result["status"] != "SUCCEEDED":
        ends = {"exit code": result["exit_code"], "signal": result["signal"], "limit": result["limit"]}
        how = ", ".join(f"{name} {value}" for name, value in ends.items() if value not in {None, ""})
        output.err.line(f"the code ended with {result['status']}: {how}" if how else f"the code: {result['status']}")
    if result["truncated"]:
        state.note(f"{' and '.join(result['truncated'])} cut short: {state.command('show', job, '--json')}")
    if result.get("artifacts"):
        state.note(f"files: {state.command('artifacts', job)}")


def failed(state: CommandState, job: str, error: TaskError) -> None:
    """Print why a job failed or cannot go on."""
    where = f"{job} step {error.step}" if error.step else job
    # What a tool says of its failure may quote what it was given.
    text = error.message.replace(f"step {error.step}: ", "", 1) if error.step else error.message
    message = mask(f"{where}: {text}")
    remedy = error.remedy
    if not remedy and error.code == Code.JOB_FAILED.name:
        remedy = f"Correct the code, then: {state.command('retry', job)}"
    show(ErrorText(error.code, message, remedy, exit_codes.FAILED, error.frames), state.output)
