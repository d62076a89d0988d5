"""`remit fork` and `remit diff`: a job again from a step, with something changed, and two runs beside each other."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state, wait_option
from remit.cli.output import clean, counted, one_line
from remit.codes import Code
from remit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remit.cli.access import Opened
    from remit.cli.ends import End
    from remit.cli.output import OutputChannel
    from remit.parts.forks.diff import RunDiff, RunTotals, StepDiff


_SET: Final = "Write STEP.result=JSON or STEP.args=JSON."


@click.command("fork")
@click.argument("job", shell_complete=complete.jobs)
@click.option("--at", default="", metavar="STEP", help="Run again from this step. Default: as the changes need it.")
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="Another value of an input; repeatable.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="STEP.result=JSON|STEP.args=JSON",
    help="What a recorded step returned, or what a step is given that runs again; repeatable.",
)
@click.option("--tool", "tools", multiple=True, metavar="A=B", help="New calls of tool A go to tool B; repeatable.")
@click.option(
    "--model", "models", multiple=True, metavar="A=B", help="New questions to model A go to B; no A: the default one."
)
@click.option("--repeat", is_flag=True, help="Repeat calls that took effect, or may have.")
@click.option("--reason", default="", help="The reason; it is recorded.")
@wait_option
@json_option("job, state, and result or error")
@pass_state
def fork_command(
    state: CommandState,
    job: str,
    at: str,
    inputs: tuple[str, ...],
    sets: tuple[str, ...],
    tools: tuple[str, ...],
    models: tuple[str, ...],
    repeat: bool,
    reason: str,
    patient: bool,
) -> int:
    """Run a job again from a step, with something changed.

    Creates a new job that shares everything recorded before STEP and goes on from there with the current code, asking
    again for every approval. JOB itself is unchanged, and may still run. Without --at it begins at the first step of
    --set STEP.args, else after the last one of --set STEP.result, else at the start. JOB is an id, a unique ending of
    one, or `last`.
    """
    from remit.cli.job_worker import work_on
    from remit.cli.runnable import count_in_files_of

    results, args = _changes(sets)
    changed: dict[str, Any] = {
        "results": results,
        "args": args,
        "tools": dict(_pairs(tools, "--tool", "A=B")),
        "models": dict(_pairs(models, "--model", "A=B")),
    }

    async def choose(remit: Opened, _new: str) -> list[str]:
        forked = await remit.service.jobs.find(job)
        if inputs:
            changed["input"] = _inputs((await remit.service.jobs.view(forked)).input, inputs)
        child = await remit.service.forks.make(forked, at, **changed, repeat=repeat, reason=reason)
        state.note(f"forked {forked}: shares what {child.of} recorded up to event {child.shared}")
        return [child.job]

    count_in_files_of(state, (job,))
    return work_on(state, choose, patient=patient, tell=lambda state, ends: _tell(state, ends, tools, models))


def _tell(state: CommandState, ends: list[End], tools: Iterable[str], models: Iterable[str]) -> None:
    """Print how the fork was left, and which changes it made no use of."""
    from remit.cli.ends import present
    from remit.jobs.state import ENDED

    present(state, ends)
    for option, kind, pairs in (("--tool", "tool", tools), ("--model", "model", models)):
        for pair in pairs:
            name = pair.partition("=")[2]
            used = [step.name for end in ends if end.row.state in ENDED for step in end.steps]
            if used and not any(step.startswith(f"{kind}.") and step.endswith(name) for step in used):
                state.note(f"{option} {pair} was not used")


def _inputs(recorded: Any, inputs: Iterable[str]) -> dict[str, Any]:
    """Return the inputs that are given: text where the job was given text, and else JSON where it is that."""
    values: dict[str, Any] = {}
    for name, text in _pairs(inputs, "--input", "NAME=VALUE"):
        values[name] = text
        if not (isinstance(recorded, dict) and isinstance(recorded.get(name), str)):
            with suppress(msgspec.DecodeError):
                values[name] = msgspec.json.decode(text)
    return values


def _pairs(words: Iterable[str], option: str, form: str) -> list[tuple[str, str]]:
    pairs = []
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise UsageError(f"{option} {word!r:.80} has no '='", remedy=f"Write {option} {form}.")
        pairs.append((name, value))
    return pairs


def _changes(sets: Iterable[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the results and the arguments that are set, by step. Raises UsageError."""
    results: dict[str, Any] = {}
    args: dict[str, dict[str, Any]] = {}
    for name, text in _pairs(sets, "--set", "STEP.result=JSON"):
        step, _, what = name.rpartition(".")
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            reason = f"--set {name}: {text!r:.80} is not JSON: {error}"
            raise UsageError(reason, code=Code.FORK_INVALID, remedy="Put text in quotes: '\"like this\"'.") from error
        if what == "result" and step:
            results[step] = value
        elif what == "args" and step and isinstance(value, dict):
            args[step] = value
        else:
            raise UsageError(f"--set {name!r:.80} sets nothing", code=Code.FORK_INVALID, remedy=_SET)
    return results, args


_MARKS: Final = {"same": (" ", ""), "changed": ("~", "warn"), "removed": ("-", "fail"), "added": ("+", "ok")}


@click.command("diff")
@click.argument("a", shell_complete=complete.jobs)
@click.argument("b", shell_complete=complete.jobs)
@click.option("--every", is_flag=True, help="Also list the steps that are the same.")
@json_option("both runs, and the steps that differ")
@pass_state
def diff_command(state: CommandState, a: str, b: str, every: bool) -> int:
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
