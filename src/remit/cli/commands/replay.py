"""`remit replay`: does the code of today do what is recorded?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.jobs.replay import ReplayReport

_WORDS: Final = {
    "same": "the recipe does the same today",
    "incomplete": "the same as far as the job has come",
    "diverged": "the recipe goes another way today",
}


@click.command("replay")
@click.argument("job", shell_complete=complete.jobs)
@json_option("verdict, divergence and drifts")
@pass_state
def command(state: State, job: str) -> int:
    """Run a job again on its record alone, and compare.

    No tool is called and nothing is written: every result comes from the journal. Shown are the first place where
    the recipe of today goes another way than the record, if there is one, and every tool or code version that has
    changed since. Exits with status 6 where they differ.

    JOB is a job's id, an ending of it that fits only one, or `last`.
    """
    from remit.cli.output import reserved_stdout
    from remit.cli.running import run_async

    async def look() -> ReplayReport:
        async with state.remit() as remit:
            return await remit.service.jobs.replay(await remit.service.jobs.find(job))

    with reserved_stdout():
        report = run_async(lambda _stop: look())
    if state.as_json:
        state.output.json(report)
    else:
        _print(state, report)
    return exit_codes.DIVERGED if report.verdict == "diverged" else exit_codes.OK


def _print(state: State, report: ReplayReport) -> None:
    from remit.cli.tables import fields
    from remit.cli.text import clean, one_line

    out = state.output.out
    steps = f"{report.steps} recorded step{'' if report.steps == 1 else 's'} given back"
    out.line(f"{report.job}  {out.style(report.verdict, report.verdict)}: {_WORDS[report.verdict]}; {steps}")
    found = report.divergence
    if found is not None:
        where = "at the end" if found.step == "end" else f"at step {found.step}"
        out.line(f"  first difference {where}")
        fields(out, [("recorded", clean(found.recorded)), ("now", clean(found.now))], indent=4)
    for drift in report.drifts:
        out.line(f"  {out.style('changed since', 'warn')} {one_line(drift.subject)}")
        fields(out, [("recorded", drift.recorded), ("now", drift.current or "it is gone")], indent=4)
