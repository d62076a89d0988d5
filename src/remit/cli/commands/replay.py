"""`remit replay`: does the code of today do what is recorded?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.codes import Code
from remit.errors import RemitError, UsageError

if TYPE_CHECKING:
    from remit.cli.opened import Opened
    from remit.jobs.replay import ReplayReport
    from remit.jobs.stopping import Stop
    from remit.service.many import Replayed

STATES: Final = ("pending", "running", "waiting", "completed", "failed", "cancelled")
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
_DRIFTS: Final = {
    "annotation_only": "(only descriptions)",
    "compatible": "(compatible)",
    "breaking": "(breaking)",
}


@click.command("replay")
@click.argument("job", required=False, shell_complete=complete.jobs)
@click.option("--all", "everything", is_flag=True, help="Every job.")
@click.option("--since", metavar="AGE", help="Every job created in this time: 90s, 30m, 12h or 7d.")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Every job in this state; repeatable."
)
@click.option("--anyway", is_flag=True, help="Also where jobs.mismatch refuses other versions than recorded.")
@click.option(
    "--live", type=click.Choice(["L0"]), metavar="L0", help="Call read-only tools of this level again, and compare."
)
@click.option("--until", metavar="STEP", help="Stop at this step with a Python prompt in the recipe; Ctrl-D goes on.")
@json_option("verdict, divergence and drifts; a list for several jobs; with --live, both reports")
@pass_state
@click.pass_context
def command(
    context: click.Context,
    state: State,
    job: str | None,
    everything: bool,
    since: str | None,
    states: tuple[str, ...],
    anyway: bool,
    live: str | None,
    until: str | None,
) -> int:
    """Run a job's code against its record, and report differences.

    Calls no tool and writes nothing: every result comes from the journal. Reports the first place where today's code
    departs from the record, recorded calls that today's schemas, policy or missing servers would refuse or hold, and
    tools and code whose version has changed; jobs.mismatch = "fail" or "migrate" refuses other versions here too,
    unless --anyway is given. Exits with status 6 if the code departs or a call would be refused. For several jobs,
    prints a table; the status is 1 if none departs but some could not be replayed. With --live, the job's calls that
    only read are made again, each through the gate, and what they return is compared; so are those of a session. With
    --until, a Python prompt opens in the recipe at a step, with its variables; what it asks of the run is refused. JOB
    is an id, a unique ending of one, or `last`; of a session, each call is judged as of today, and no recipe runs.
    """
    from remit.cli.output import reserved_stdout
    from remit.cli.runnable import count_in_files_of

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
        return _live(state, job, anyway=anyway)
    stop = _prompt(state, until) if until else None

    async def look(remit: Opened) -> ReplayReport:
        found = await remit.service.jobs.find(job)
        try:
            return await remit.service.jobs.replay(found, anyway=anyway, stop=stop)
        except RemitError as error:
            if error.code is Code.UNKNOWN_RECIPE and (file := (await remit.service.jobs.view(found)).module):
                error.remedy = f"It was run from a file: {state.command('replay', found, module=file)}"
            raise

    with reserved_stdout():
        report = state.ask(look)
    if state.as_json:
        state.output.json(report)
    else:
        _print(state, report)
    return exit_codes.DIVERGED if _differs(report) else exit_codes.OK


def _prompt(state: State, step: str) -> Stop:
    """Return a stop that opens a Python prompt. Raises UsageError where there is no terminal for one."""
    if not state.output.interactive:
        raise UsageError(
            "there is no terminal for a Python prompt",
            remedy="Run it at a terminal, with stdin and stderr as they are; `remit show JOB --step` shows a step.",
        )
    from remit.cli.console import ask_python
    from remit.jobs.stopping import Stop

    return Stop(step, lambda frame, wanted: ask_python(state.output.err, frame, f"step {step}: {wanted}"))


def _live(state: State, job: str, *, anyway: bool) -> int:
    from remit.cli.output import reserved_stdout
    from remit.cli.text import clean, one_line
    from remit.service.live import LiveReport

    async def look(remit: Opened) -> tuple[ReplayReport, LiveReport]:
        found = await remit.service.jobs.find(job)
        report = await remit.service.jobs.replay(found, anyway=anyway)
        return report, await remit.service.sessions.again(found)

    with reserved_stdout():
        report, live = state.ask(look, servers=True, writes=True)
    if state.as_json:
        state.output.json({"replay": report, "live": live})
    else:
        _print(state, report)
        out = state.output.out
        for call in live.calls:
            style = {"same": "ok", "skipped": "dim"}.get(call.verdict, "fail")
            out.line(f"  {out.style(call.verdict, style)}  step {call.step} {one_line(call.tool)}")
            for side, text in (("recorded", call.recorded), ("now", call.now)):
                if call.verdict != "same" and text:
                    out.line(f"    {side}  {clean(text)}")
        state.note(f"{len(live.calls)} calls looked at; what was called again is recorded in {live.session}")
    return exit_codes.DIVERGED if live.differs or _differs(report) else exit_codes.OK


def _differs(report: ReplayReport) -> bool:
    return report.verdict == "diverged" or report.today == "refused"


def _many(state: State, since: str | None, states: tuple[str, ...], *, anyway: bool) -> int:
    from remit.cli.output import reserved_stdout
    from remit.cli.runnable import count_in_files_of
    from remit.cli.values import seconds
    from remit.clock import SECOND, SystemClock

    begin = SystemClock().now() - seconds(since, "--since") * SECOND if since else 0
    count_in_files_of(state, (), states or STATES)

    async def look(remit: Opened) -> list[Replayed]:
        return [one async for one in remit.service.jobs.replays(states, since=begin, anyway=anyway)]

    with reserved_stdout():
        found = state.ask(look)
    if state.as_json:
        state.output.json(found)
    else:
        _print_many(state, found)
    if any(one.report is not None and _differs(one.report) for one in found):
        return exit_codes.DIVERGED
    return exit_codes.ERROR if any(one.report is None for one in found) else exit_codes.OK


def _print_many(state: State, found: list[Replayed]) -> None:
    from collections import Counter

    from remit.cli.tables import Column, short_ids, table

    columns = (Column("JOB"), Column("REPLAY", states=True), Column("NAME", whole=False), Column("ABOUT", whole=False))
    jobs = short_ids(state.output.out, [one.job for one in found])
    rows = [(job, _verdict(one), one.name, _about(one)) for job, one in zip(jobs, found, strict=True)]
    table(state.output.out, columns, rows)
    counts = Counter(_verdict(one) for one in found)
    words = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    state.note(f"{len(found)} jobs: {words}" if found else "no such jobs")


def _verdict(one: Replayed) -> str:
    if one.report is None:
        return "not replayed"
    return "refused" if one.report.verdict != "diverged" and one.report.today == "refused" else one.report.verdict


def _about(one: Replayed) -> str:
    from remit.cli.text import one_line

    if one.report is None:
        return one_line(f"{one.code}: {one.reason}")
    parted, drifts = one.report.divergence, len(one.report.drifts)
    changed = f"{drifts} version{'' if drifts == 1 else 's'} changed since" if drifts else ""
    if parted is None and one.report.calls:
        first = next(call for call in one.report.calls if call.change == one.report.today)
        return one_line(f"step {first.step}: {_CALLS[first.change]} {first.code} {first.reason}")
    return one_line(f"step {parted.step}: {parted.recorded} / now {parted.now}") if parted is not None else changed


def _print(state: State, report: ReplayReport) -> None:
    from remit.cli.tables import fields
    from remit.cli.text import clean, one_line

    out = state.output.out
    steps = f"{report.steps} recorded step{'' if report.steps == 1 else 's'} returned"
    if report.job.startswith("ses_"):
        judged = (
            f"{report.steps} recorded call{'' if report.steps == 1 else 's'} judged by the tools and rules of today"
        )
        out.line(f"{report.job}  {out.style(report.today, report.today)}: {judged}")
    else:
        out.line(f"{report.job}  {out.style(report.verdict, report.verdict)}: {_WORDS[report.verdict]}; {steps}")
    found = report.divergence
    if found is not None:
        where = "at the end" if found.step == "end" else f"at step {found.step}"
        out.line(f"  first difference {where}")
        fields(out, [("recorded", clean(found.recorded)), ("now", clean(found.now))], indent=4)
    for call in report.calls:
        style = "fail" if call.change == "refused" else "warn"
        why = ": ".join(filter(None, (call.code, call.reason)))
        out.line(f"  {out.style(_CALLS[call.change], style)}  step {call.step} {one_line(call.tool)}")
        out.line("    " + clean(why))
    for drift in report.drifts:
        what = " ".join(filter(None, (_ABOUT.get(drift.about, drift.about), _DRIFTS.get(drift.drift, ""))))
        out.line(f"  {out.style('changed since', 'warn')} {one_line(drift.subject)}: {what}")
        fields(out, [("recorded", drift.recorded or "none"), ("now", drift.current or "it is gone")], indent=4)
