"""`remit policy backtest`: what would other rules have decided?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import counted, one_line

if TYPE_CHECKING:
    from remit.parts.drift.backtest import BacktestReport, Change

_FAILS: Final[dict[str, tuple[Literal["looser", "stricter", "people"], ...]]] = {
    "any": ("looser", "stricter", "people"),
    "looser": ("looser",),
    "stricter": ("stricter",),
    "never": (),
}
_WAS: Final = {"allow": "allowed", "ask": "asked", "deny": "denied"}
_STYLES: Final = {"looser": "warn", "stricter": "warn", "people": "dim"}


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
def command(state: CommandState, file: Path, since: str | None, fails: str) -> int:
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
    state.show(report, _print)
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


def _print(state: CommandState, report: BacktestReport) -> None:
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
    out.line(f"{out.style(change.direction, _STYLES[change.direction])}  {what}  {line}")
    reason = change.examples[0].reason if change.examples else ""
    if reason:
        out.line(f"  {one_line(reason)}")
