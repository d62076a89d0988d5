"""`remit diff`: two runs beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean, counted, one_line

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.cli.output import OutputChannel
    from remit.parts.forks.diff import RunDiff, RunTotals, StepDiff

_MARKS: Final = {"same": (" ", ""), "changed": ("~", "warn"), "removed": ("-", "fail"), "added": ("+", "ok")}


@click.command("diff")
@click.argument("a", shell_complete=complete.jobs)
@click.argument("b", shell_complete=complete.jobs)
@click.option("--every", is_flag=True, help="Also list the steps that are the same.")
@json_option("both runs, and the steps that differ")
@pass_state
def command(state: CommandState, a: str, b: str, every: bool) -> int:
    """Compare two runs step by step.

    Aligns the steps of two jobs, or sessions, by place, tool and arguments, and shows which were put in, left out, or
    had another input, result, version, model, approval or cost. Exits with status 6 if they differ; how long steps
    took is no difference. A and B are ids, unique endings of some, or `last`.
    """

    async def look(remit: Opened) -> RunDiff:
        jobs = remit.service.jobs
        diff: RunDiff = await remit.service.forks.diff(await jobs.find(a), await jobs.find(b), every=every)
        return diff

    diff = state.ask(look)
    state.show(diff, lambda state, diff: _print(state.output.out, diff))
    differs = bool(diff.differences or diff.changed or diff.removed or diff.added)
    return exit_codes.DIVERGED if differs else exit_codes.OK


def _print(out: OutputChannel, diff: RunDiff) -> None:
    from remit.cli.tables import fields

    out.line(f"a  {diff.a.job}  {diff.a.name}  {out.style(diff.a.state, diff.a.state)}  {_totals(diff.a)}")
    out.line(f"b  {diff.b.job}  {diff.b.name}  {out.style(diff.b.state, diff.b.state)}  {_totals(diff.b)}")
    for difference in diff.differences:
        out.line(f"{out.style('~', 'warn')} {difference.about}")
        fields(out, [("a", clean(difference.a) or "none"), ("b", clean(difference.b) or "none")], indent=4)
    for step in diff.steps:
        _print_step(out, step)
    words = [f"{diff.same} the same", f"{diff.changed} changed", f"{diff.removed} removed", f"{diff.added} added"]
    out.line("steps: " + ", ".join(words))


def _print_step(out: OutputChannel, step: StepDiff) -> None:
    from remit.cli.tables import fields

    mark, style = _MARKS[step.change]
    places = step.a or step.b if step.a == step.b or not (step.a and step.b) else f"{step.a} > {step.b}"
    took = ", ".join(f"{side} {ms:.1f} ms" for side, ms in (("a", step.a_ms), ("b", step.b_ms)) if ms)
    shared = "shared" if step.shared else took
    name = one_line(step.name.removeprefix("tool."))
    out.line(f"{out.style(mark, style)} {places}  {name}  {out.style(shared, 'dim')}".rstrip())
    for difference in step.differences:
        if step.change == "changed":
            sides = (("a", difference.a), ("b", difference.b))
            fields(out, [(f"{difference.about} {side}", clean(text) or "none") for side, text in sides], indent=4)
        else:
            fields(out, [(difference.about, clean(difference.a or difference.b))], indent=4)


def _totals(run: RunTotals) -> str:
    from remit.clock import duration

    parts = [counted(run.steps, "step"), duration(int(run.ms * 1_000))]
    parts += [counted(run.approvals, "approval")] if run.approvals else []
    parts += [counted(run.tokens, "token")] if run.tokens else []
    parts += [f"${run.cost:.4f}"] if run.cost is not None else []
    return ", ".join(parts)
