"""`remit drift`, `remit versions` and `remit policy backtest`: what is different today from what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import catalog_option, json_option, live_option, pass_state
from remit.cli.output import counted, one_line, reserved_stdout

if TYPE_CHECKING:
    from remit.models.names import ModelInfo
    from remit.parts.drift.backtest import BacktestReport, Change
    from remit.parts.drift.models import ModelDrift, OutputDrift, SkillDrift
    from remit.parts.drift.needs import CodeDrift, Need, VersionsReport
    from remit.parts.drift.noun import DriftReport
    from remit.parts.drift.tools import ToolDrift


_LINES: Final = 8
"""Lines about one version that are shown."""
_DRIFT_STYLES: Final = {"gone": "fail", "breaking": "fail", "changed": "warn", "unknown": "warn"}
_CALLS: Final = {"refused": "would be refused", "asks": "would need approval", "runs": "would run"}


@click.command("drift")
@click.argument("job", required=False, shell_complete=complete.jobs)
@click.option("--all", "everything", is_flag=True, help="Everything that is recorded.")
@click.option("--tool", default="", metavar="NAME", help="One tool.", shell_complete=complete.tools)
@click.option("--model", default="", metavar="NAME", help="One model, as it was asked or as it answered; a part of it.")
@click.option("--since", metavar="AGE", help="Everything recorded in this time: 90s, 30m, 12h or 7d.")
@json_option("tools, models, outputs, code and skills that differ")
@pass_state
@click.pass_context
def drift_command(
    context: click.Context,
    state: CommandState,
    job: str | None,
    everything: bool,
    tool: str,
    model: str,
    since: str | None,
) -> int:
    """Say what is different today from what was recorded.

    Compares every recorded version with today's tools, code and rules: by tool, the worst first, with what changed in
    each schema, recorded arguments that would be refused, and calls that today's rules would deny or ask about. Also
    for jobs whose code is gone. Shows which model answered under each name, and prompts that brought different answers,
    and skills that are no longer as a job took them up.
    Imports your modules and lists the tools of your servers; calls no tool and no model, and writes nothing. Exits with
    status 6 if something harmful differs. JOB is an id, a unique ending of one, or `last`.
    """
    from remit.cli.runnable import count_in_files_of
    from remit.cli.values import since_us

    if not (job or everything or tool or model or since):
        raise click.UsageError("Give JOB, or --all, --tool, --model or --since.", context)
    if job:
        count_in_files_of(state, (job,))
    begin = since_us(since)

    with reserved_stdout():
        report: DriftReport = state.ask(
            lambda remit: remit.service.drift.report(job or "", tool=tool, model=model, since=begin)
        )
    state.show(report, _print_drift)
    return exit_codes.DIVERGED if report.differs else exit_codes.OK


def _print_drift(state: CommandState, report: DriftReport) -> None:
    for tool in report.tools:
        _tool(state, tool)
    for code in report.code:
        _code(state, code)
    for skill in report.skills:
        _skill(state, skill)
    moved = [drift for drift in report.models if drift.moved]
    for model in moved:
        _model(state, model)
    for output in report.outputs:
        _output(state, output)
    for provider, reason in report.unlisted.items():
        state.note(f"nothing is said of the tools of {provider}, which cannot be listed: {reason}")
    for reason, count in report.missing.items():
        state.note(f"today's rules were not asked about {count} decisions: {reason}")
    if report.resumes:
        _print_going_on(state, report)
    if not (report.tools or report.code or report.skills or moved or report.outputs):
        out = state.output.out
        out.line(f"{out.style('same', 'ok')}  nothing differs from what is recorded ({report.decisions} decisions)")


def _print_going_on(state: CommandState, report: DriftReport) -> None:
    from remit.service.replay import GOING_ON

    out = state.output.out
    style, words = GOING_ON[report.resumes]
    out.line(f"{out.style('today', style)}  {words}")
    for reason in report.because:
        out.line(f"    {one_line(reason)}")


def _tool(state: CommandState, tool: ToolDrift) -> None:
    from remit.cli.tables import moment

    out = state.output.out
    parts = [f"{counted(tool.calls, 'call')} under other versions"] if tool.calls else []
    parts += [f"{getattr(tool, name)} {words}" for name, words in _CALLS.items() if getattr(tool, name)]
    parts += [f"{counted(tool.open, 'open job')}, {tool.ended} ended"] if tool.open or tool.ended else []
    drift = tool.drift if tool.drift != "identical" else "rules"
    out.line(f"{out.style(drift, _DRIFT_STYLES.get(drift, 'warn'))}  {one_line(tool.tool)}  {'; '.join(parts)}")
    for variant in tool.variants:
        version = one_line(f"{variant.version or 'no version'} ({variant.provider_id})")
        when = f"{counted(variant.calls, 'call')}, the last {moment(variant.last_at)}"
        out.line(f"  {variant.drift}: {version}; {out.style(when, 'dim')}")
        for line in variant.changes[:_LINES]:
            out.line(f"    {one_line(line)}")
        if len(variant.changes) > _LINES:
            out.line(f"    and {len(variant.changes) - _LINES} more: --json")
    for call in tool.examples:
        reason = one_line(": ".join(filter(None, (call.code, call.reason))))
        out.line(f"  {out.style(_CALLS[call.change], 'warn')}  {call.job} step {call.step}  {out.style(reason, 'dim')}")


def _code(state: CommandState, code: CodeDrift) -> None:

    out = state.output.out
    current = code.current or "not here"
    change = out.style(code.change, _DRIFT_STYLES.get(code.change, "warn"))
    jobs = f"{counted(code.open, 'open job')}, {code.ended} ended"
    what = "plans" if code.kind == "plan" else f"recipe {one_line(code.name)}"
    out.line(f"{change}  {what}  {one_line(code.recorded or 'none')} → {one_line(current)}; {jobs}")


def _skill(state: CommandState, skill: SkillDrift) -> None:

    out = state.output.out
    change = out.style("changed" if skill.current else "gone", "warn")
    jobs = f"{counted(skill.open, 'open job')}, {skill.ended} ended"
    current = f"{skill.current[:19]}…" if skill.current else "not here"
    out.line(f"{change}  skill {one_line(skill.name)}  {skill.recorded[:19]}… → {current}; {jobs}")


def _model(state: CommandState, model: ModelDrift) -> None:
    from remit.cli.tables import moment

    out = state.output.out
    out.line(f"{out.style('moved', 'warn')}  model {one_line(model.name)}")
    for variant in model.answered:
        when = f"{counted(variant.answers, 'answer')}, {moment(variant.first_at)} to {moment(variant.last_at)}"
        out.line(f"    {one_line(_named(variant.model))}  {out.style(when, 'dim')}")


def _named(info: ModelInfo) -> str:
    version = "latest" if info.alias and not info.version else info.version
    return " ".join(filter(None, (f"{info.provider}/{info.name}", version)))


def _output(state: CommandState, output: OutputDrift) -> None:

    out = state.output.out
    what = f"{output.different} different answers of {output.answers}, by {counted(output.models, 'model')}"
    out.line(f"{out.style('answers', 'warn')}  prompt {output.prompt_hash[:19]}…  {what}")
    for answer in output.examples:
        out.line(f"    {one_line(answer.model)}  {answer.job} step {answer.step}  {one_line(answer.preview)}")


_SERVED: Final = {"yes": "served", "no": "missing", "unknown": "unknown"}
_RETIRE: Final = {
    "recipe": "recipe {0} {1}",
    "migration": "migration of {0} from {1}",
    "patch": "{0}: the old way of {1}",
}


@click.command("versions")
@catalog_option
@live_option
@json_option("what open jobs need, and what can be retired")
@pass_state
def versions_command(state: CommandState, live: bool) -> int:
    """Say which versions open jobs need, and what can be retired.

    Lists each version of a recipe, of plans and of a tool that jobs which have not ended were recorded under, and
    whether a process that works now has it. Then what no open job needs: older recipes that processes still carry, old
    ways of `run.patched`, and, with --live, migrations. Exits with status 1 if an open job needs code that no process
    has.
    """
    report: VersionsReport = state.ask(
        lambda remit: remit.service.drift.versions(), code="needed" if live else "recorded"
    )
    state.show(report, _print_versions)
    missing = any(need.served == "no" and need.kind != "tool" for need in report.needs)
    return exit_codes.ERROR if missing else exit_codes.OK


def _print_versions(state: CommandState, report: VersionsReport) -> None:
    from remit.cli.tables import TableColumn, table

    out = state.output.out
    columns = ("NEEDED", "VERSION", "JOBS", TableColumn("SERVED", states=True), TableColumn("BY", whole=False))
    rows = [(*_what(need), str(need.open), _SERVED[need.served], _by(need)) for need in report.needs]
    table(out, columns, rows)
    if not report.needs:
        out.line("no open job needs anything")
    if report.retirable:
        out.line()
        out.line(out.style("No open job needs:", "dim"))
    for row in report.retirable:
        out.line(f"  {one_line(_RETIRE[row.kind].format(row.name, row.version))}  {out.style(row.why, 'dim')}")
    state.note(f"{counted(report.open, 'open job')}; {counted(len(report.workers), 'worker')} at work")


def _what(need: Need) -> tuple[str, str]:
    name = need.name if need.kind in {"plan", "tool"} else f"recipe {need.name}"
    return name, need.version or (f"{need.schema[:19]}…" if need.schema else "none")


def _by(need: Need) -> str:
    """Return who has it; else the jobs that wait for it."""
    return ", ".join(need.served_by) or f"for {', '.join(need.open_jobs)}"


_FAILS: Final[dict[str, tuple[Literal["looser", "stricter", "people"], ...]]] = {
    "any": ("looser", "stricter", "people"),
    "looser": ("looser",),
    "stricter": ("stricter",),
    "never": (),
}
_WAS: Final = {"allow": "allowed", "ask": "asked", "deny": "denied"}
_BACKTEST_STYLES: Final = {"looser": "warn", "stricter": "warn", "people": "dim"}


@click.command("backtest")
@click.option(
    "--policy",
    "file",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A TOML file with [[policy.rules]], such as a changed remit.toml.",
)
@click.option("--since", metavar="AGE", help="Decisions of this time: 12h, 90d. Default: all that are recorded.")
@click.option(
    "--fail-on",
    "fails",
    type=click.Choice(list(_FAILS)),
    default="any",
    help="Which changes end with status 6. Default: any.",
)
@json_option("the decisions that would change")
@pass_state
def backtest_command(state: CommandState, file: Path, since: str | None, fails: str) -> int:
    """Take recorded decisions again under other rules.

    Works from the record alone: arguments, callers, origins, earlier results and what was taken of limits. Shows what
    would be asked, denied or allowed instead, by rule and tool, with examples, and how many questions people would
    have got. Runs nothing, calls nothing and asks no one. `looser`: fewer obstacles than recorded; `stricter`: more;
    `any` also counts questions to other people.
    """
    from remit.cli.values import since_us

    policy = _policy_in(file)
    begin = since_us(since)

    report: BacktestReport = state.ask(
        lambda remit: remit.service.drift.backtest(**policy, since=begin), code="described"
    )
    state.show(report, _print_backtest)
    return exit_codes.DIVERGED if report.has(*_FAILS[fails]) else exit_codes.OK


def _policy_in(file: Path) -> dict[str, Any]:
    """The rules of a file, with its groups and its taint. Raises UsageError."""
    from remit.cli.policies import policy_in
    from remit.policy.pots import filled

    table = policy_in(file)
    more: dict[str, Any] = {name: table[name] for name in ("taint", "groups") if name in table}
    if "groups" in more:
        more["groups"] = {
            name: [members] if isinstance(members, str) else members for name, members in more["groups"].items()
        }
    return {"rules": filled(table["rules"], table.get("pots", {})), **more}


def _print_backtest(state: CommandState, report: BacktestReport) -> None:
    from remit.cli.tables import moment

    out = state.output.out
    for change in report.changes:
        _change(state, change)
        for example in change.examples:
            where = f"{moment(example.at)}  {example.job} step {example.step}  {one_line(example.args)}"
            out.line(f"    {out.style(where, 'dim')}")
    verdict = out.style("same", "ok") if not report.changes else f"{report.decisions - report.same} of"
    out.line(f"{verdict} {counted(report.decisions, 'decision')}{'' if report.changes else ', none changes'}")
    recorded, now = report.recorded, report.now
    words = (
        f"asked {recorded.ask} → {now.ask}, denied {recorded.deny} → {now.deny}, allowed {recorded.allow} → {now.allow}"
    )
    out.line(f"  {words}")
    for reason, count in report.missing.items():
        state.note(f"{counted(count, 'decision')} could not be taken again: {reason}")


def _change(state: CommandState, change: Change) -> None:

    out = state.output.out
    what = f"{_WAS[change.recorded]} → {_WAS[change.now]}" if change.recorded != change.now else "asks other people"
    rules = f"{one_line(change.recorded_rule or 'no rule')} → {one_line(change.rule)}"
    line = f"{one_line(change.tool)}  {counted(change.calls, 'call')}  {rules}"
    out.line(f"{out.style(change.direction, _BACKTEST_STYLES[change.direction])}  {what}  {line}")
    reason = change.examples[0].reason if change.examples else ""
    if reason:
        out.line(f"  {one_line(reason)}")
