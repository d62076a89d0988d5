"""`remit replay`: does the code of today do what is recorded?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from remit.capability import ReplayTerms
from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean, counted, one_line, reserved_stdout
from remit.codes import Code
from remit.errors import RemitError, UsageError

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.jobs.replay import ReplayReport, ReplayStop
    from remit.service.many import Replayed

STATES: Final = ("pending", "running", "waiting", "completed", "failed", "cancelled")
_SESSIONS: Final = 10_000
"""Sessions that `--all` replays, the newest."""
_WORDS: Final = {
    "same": "the current code follows the record",
    "incomplete": "the same as far as the job has come",
    "diverged": "the current code departs from the record",
}
_CALLS: Final = {
    "refused": "would be refused today",
    "asks": "would need approval today",
    "runs": "would run today",
}
_ABOUT: Final = {
    "execution": "the code",
    "planner": "the code",
    "recipe": "the code",
    "registry": "the list of tools",
    "tool": "the version",
    "request": "the schema of the arguments",
    "response": "the schema of the result",
}
_DRIFTED: Final = {"output": "another answer", "model": "another model answered"}
_DRIFTS: Final = {
    "annotation_only": "(only descriptions)",
    "compatible": "(compatible)",
    "breaking": "(breaking)",
}


@click.command("replay")
@click.argument("job", required=False, shell_complete=complete.jobs)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--all", "everything", is_flag=True, help="Every job and session.")
@click.option("--since", metavar="AGE", help="Every job and session of this time: 90s, 30m, 12h or 7d.")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Every job in this state; repeatable."
)
@click.option("--anyway", is_flag=True, help="Also where jobs.mismatch refuses other versions than recorded.")
@click.option(
    "--live",
    type=click.Choice(["L0", "models"]),
    help="Call read-only tools again, or ask models again, and compare.",
)
@click.option("-y", "--yes", is_flag=True, help="With --live models: ask without confirming what it costs.")
@click.option("--until", metavar="STEP", help="Stop at this step with a Python prompt in the recipe; Ctrl-D goes on.")
@click.option(
    "--results",
    type=click.Choice(["strict", "drift", "governed"]),
    default="drift",
    help="With COMMAND: other results of its tools end it, or are told; governed: Remit's own are the recorded ones.",
)
@click.option(
    "--fork-at",
    type=click.IntRange(min=1),
    metavar="N",
    help="With COMMAND: ask models from question N on, as a new job; questions that offer tools count.",
)
@json_option("verdict, divergence and drifts; a list for several jobs; with --live, both reports")
@pass_state
@click.pass_context
def command(
    context: click.Context,
    state: CommandState,
    job: str | None,
    everything: bool,
    since: str | None,
    states: tuple[str, ...],
    anyway: bool,
    live: str | None,
    yes: bool,
    until: str | None,
    program: tuple[str, ...],
    results: str,
    fork_at: int | None,
) -> int:
    """Run a job's code against its record, and report differences.

    Calls no tool and writes nothing: every result comes from the journal. Reports the first place where today's code
    departs from the record, recorded calls that today's schemas, policy or missing servers would refuse or hold, and
    tools and code whose version has changed; jobs.mismatch = "fail" or "migrate" refuses other versions here too,
    unless --anyway is given. Exits with status 6 if the code departs or a call would be refused. For several jobs,
    prints a table; the status is 1 if none departs but some could not be replayed. With --live, the job's calls that
    only read are made again, each through the gate, and what they return is compared; so are those of a session. With
    --live models, its models are asked again what they were asked, once you have confirmed what that may cost. With
    --until, a Python prompt opens in the recipe at a step, with its variables; what it asks of the run is refused. JOB
    is an id, a unique ending of one, or `last`; of a session, each call is judged as of today, and no recipe runs.

    With COMMAND, the program is run on the recorded answers of a job of `remit record`; no model is reached.
    """
    from remit.cli.runnable import count_in_files_of

    if job and (program or fork_at):
        return _on_record(context, state, job, program, ReplayTerms(results, fork_at or 0))
    if (live or until) and not job:
        raise click.UsageError(f"--{'live' if live else 'until'} needs JOB.", context)
    if live and until:
        raise click.UsageError("Give --live or --until.", context)
    if bool(job) == bool(everything or since or states):
        raise click.UsageError("Give JOB, or --all, --since or --state.", context)
    if not job:
        return _many(state, since, states, anyway=anyway)

    count_in_files_of(state, (job,))
    if live:
        return _live(state, job, live, anyway=anyway, yes=yes)
    stop = _prompt(state, until) if until else None

    async def look(remit: Opened) -> ReplayReport:
        job_id = await remit.service.jobs.find(job)
        try:
            return await remit.service.jobs.replay(job_id, anyway=anyway, stop=stop)
        except RemitError as error:
            if error.code is Code.UNKNOWN_RECIPE and (file := (await remit.service.jobs.view(job_id)).module):
                error.remedy = f"It was run from a file: {state.command('replay', job_id, module=file)}"
            raise

    with reserved_stdout():
        report = state.ask(look)
    state.show(report, _print)
    return exit_codes.DIVERGED if _differs(report) else exit_codes.OK


def _on_record(
    context: click.Context, state: CommandState, job: str, program: tuple[str, ...], terms: ReplayTerms
) -> int:
    """Run a program on the record of one. Raises UsageError if no part does that."""
    from remit.wiring.parts import parts_of, replayer_of

    if not program:
        raise click.UsageError("--fork-at needs COMMAND.", context)
    replayer = replayer_of(parts_of(state.settings()))
    if replayer is None:
        raise UsageError("no part runs programs on their record", remedy="Take model_gateway in, or leave COMMAND out.")
    return replayer(state, job, program, terms)


def _prompt(state: CommandState, step: str) -> ReplayStop:
    """Return a stop that opens a Python prompt. Raises UsageError where there is no terminal for one."""
    if not state.output.interactive:
        raise UsageError(
            "there is no terminal for a Python prompt",
            remedy="Run it at a terminal, with stdin and stderr as they are; `remit show JOB --step` shows a step.",
        )
    from remit.cli.console import ask_python
    from remit.jobs.replay import ReplayStop

    return ReplayStop(step, lambda frame, wanted: ask_python(state.output.err, frame, f"step {step}: {wanted}"))


def _confirm_cost(state: CommandState, job: str, *, yes: bool) -> None:
    """Show what asking a job's models again costs, and have it confirmed. Raises UsageError, or Abort."""
    from remit.service.live import AskingCost

    async def look(remit: Opened) -> AskingCost:
        return await remit.service.sessions.asking_cost(await remit.service.jobs.find(job))

    cost = state.ask(look)
    if not cost.questions:
        return
    unpriced = f"; no price is known for {cost.unpriced} of them" if cost.unpriced else ""
    state.note(
        f"{counted(cost.questions, 'question')} to {one_line(', '.join(cost.models))}: {cost.tokens:,} tokens and "
        f"${cost.cost:.4f} when recorded, at most {cost.most_tokens:,} tokens and ${cost.most_cost:.4f} now{unpriced}"
    )
    if not yes and not state.output.interactive:
        raise UsageError("no one has confirmed what asking costs", remedy="Give --yes, or run it at a terminal.")
    if not yes:
        click.confirm("Ask again?", err=True, abort=True)


def _live(state: CommandState, recorded: str, live: str, *, anyway: bool, yes: bool) -> int:
    from remit.service.live import LiveReport

    if live == "models":
        _confirm_cost(state, recorded, yes=yes)

    async def look(remit: Opened) -> tuple[ReplayReport, LiveReport]:
        job = await remit.service.jobs.find(recorded)
        report, sessions = await remit.service.jobs.replay(job, anyway=anyway), remit.service.sessions
        return report, await (sessions.asked_again(job) if live == "models" else sessions.again(job))

    with reserved_stdout():
        report, live_report = state.ask(look, servers=live == "L0", writes=True)
    if state.as_json:
        state.output.json({"replay": report, "live": live_report})
    else:
        _print(state, report)
        out = state.output.out
        for call in live_report.calls:
            style = {"same": "ok", "skipped": "dim"}.get(call.verdict, "fail")
            what = f" ({_DRIFTED[call.drift]})" if call.drift else ""
            out.line(f"  {out.style(call.verdict, style)}  step {call.step} {one_line(call.tool)}{what}")
            for side, text in (("recorded", call.recorded), ("now", call.now)):
                if call.verdict != "same" and text:
                    out.line(f"    {side}  {clean(text)}")
        looked = counted(len(live_report.calls), "question" if live == "models" else "call")
        state.note(f"{looked} looked at" + (f"; recorded in {live_report.session}" if live_report.session else ""))
    return exit_codes.DIVERGED if live_report.differs or _differs(report) else exit_codes.OK


def _is_session(identifier: str) -> bool:
    """Return whether a session is named, or a call of one."""
    return identifier.startswith(("ses_", "call_"))


def _differs(report: ReplayReport) -> bool:
    return report.verdict == "diverged" or report.today == "refused"


def _many(state: CommandState, since: str | None, states: tuple[str, ...], *, anyway: bool) -> int:
    from functools import partial

    from remit.cli.runnable import count_in_files_of
    from remit.cli.values import since_us
    from remit.service.many import replayed_row

    begin = since_us(since)
    count_in_files_of(state, (), states or STATES)

    async def look(remit: Opened) -> list[Replayed]:
        replays = [each async for each in remit.service.jobs.replays(states, since=begin, anyway=anyway)]
        if not states:
            replay = partial(remit.service.jobs.replay, anyway=anyway)
            rows = [row for row in await remit.service.sessions.rows(limit=_SESSIONS) if row.created_at >= begin]
            replays += [await replayed_row(replay, row.session, row.title, "") for row in rows]
        return [each for each in replays if not _is_session(each.job) or each.report is None or each.report.steps]

    with reserved_stdout():
        jobs_replayed = state.ask(look)
    state.show(jobs_replayed, _print_many)
    if any(replayed.report is not None and _differs(replayed.report) for replayed in jobs_replayed):
        return exit_codes.DIVERGED
    return exit_codes.ERROR if any(replayed.report is None for replayed in jobs_replayed) else exit_codes.OK


def _print_many(state: CommandState, jobs_replayed: list[Replayed]) -> None:
    from collections import Counter

    from remit.cli.tables import TableColumn, short_ids, table

    columns = (
        "JOB",
        TableColumn("REPLAY", states=True),
        TableColumn("NAME", whole=False),
        TableColumn("ABOUT", whole=False),
    )
    jobs = short_ids(state.output.out, [replayed.job for replayed in jobs_replayed])
    rows = [
        (job, _verdict(replayed), replayed.name, _about(replayed))
        for job, replayed in zip(jobs, jobs_replayed, strict=True)
    ]
    table(state.output.out, columns, rows)
    counts = Counter(_verdict(replayed) for replayed in jobs_replayed)
    words = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    sessions = sum(_is_session(replayed.job) for replayed in jobs_replayed)
    kinds = ((len(jobs_replayed) - sessions, "job"), (sessions, "session"))
    what = " and ".join([counted(number, kind) for number, kind in kinds if number])
    state.note(f"{what}: {words}" if jobs_replayed else "no such jobs")


def _verdict(replay: Replayed) -> str:
    if replay.report is None:
        return "not replayed"
    if _is_session(replay.job):
        return replay.report.today
    return (
        "refused" if replay.report.verdict != "diverged" and replay.report.today == "refused" else replay.report.verdict
    )


def _about(replay: Replayed) -> str:

    if replay.report is None:
        return one_line(f"{replay.code}: {replay.reason}")
    parted, drifts = replay.report.divergence, len(replay.report.drifts)
    changed = f"{counted(drifts, 'version')} changed since" if drifts else ""
    if parted is None and replay.report.calls:
        first = next(call for call in replay.report.calls if call.change == replay.report.today)
        return one_line(f"step {first.step}: {_CALLS[first.change]} {first.code} {first.reason}")
    return one_line(f"step {parted.step}: {parted.recorded} / now {parted.now}") if parted is not None else changed


def _print(state: CommandState, report: ReplayReport) -> None:
    from remit.cli.tables import fields

    out = state.output.out
    steps = f"{counted(report.steps, 'recorded step')} returned"
    if _is_session(report.job):
        judged = f"{counted(report.steps, 'recorded call')} judged by the tools and rules of today"
        out.line(f"{report.job}  {out.style(report.today, report.today)}: {judged}")
    else:
        out.line(f"{report.job}  {out.style(report.verdict, report.verdict)}: {_WORDS[report.verdict]}; {steps}")
    divergence = report.divergence
    if divergence is not None:
        where = "at the end" if divergence.step == "end" else f"at step {divergence.step}"
        out.line(f"  first difference {where}")
        fields(out, [("recorded", clean(divergence.recorded)), ("now", clean(divergence.now))], indent=4)
    for call in report.calls:
        style = "fail" if call.change == "refused" else "warn"
        reason = ": ".join(filter(None, (call.code, call.reason)))
        out.line(f"  {out.style(_CALLS[call.change], style)}  step {call.step} {one_line(call.tool)}")
        out.line("    " + clean(reason))
    for drift in report.drifts:
        what = " ".join(filter(None, (_ABOUT.get(drift.about, drift.about), _DRIFTS.get(drift.drift, ""))))
        out.line(f"  {out.style('changed since', 'warn')} {one_line(drift.subject)}: {what}")
        fields(out, [("recorded", drift.recorded or "none"), ("now", drift.current or "it is gone")], indent=4)
