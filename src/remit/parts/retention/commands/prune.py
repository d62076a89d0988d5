"""`remit journal prune`: remove what has been kept long enough."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.parts.retention.prune import Pruning
    from remit.parts.retention.rule import RetentionRule


@click.command("prune")
@click.option("--before", "age", metavar="AGE", help="Records whose last event is older: 90d, 12h.")
@click.option(
    "--rules", is_flag=True, help="What the [[retention]] tables do not keep any longer; instead of --before."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(
        ["job", "session", "ticket", "work", "schedule_day", "notification", "login", "push_subscription"]
    ),
    help="Repeatable.",
)
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only in this state, such as completed; repeatable."
)
@click.option("--label", "labels", multiple=True, metavar="NAME=TEXT", help="Only with this label; repeatable.")
@click.option(
    "--archive",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write each one's package here first.",
)
@click.option("--vacuum", is_flag=True, help="Give the space back; needs as much free space as is left.")
@click.option("--dry-run", is_flag=True, help="Remove nothing, and say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option("what was removed, and what stays and why")
@pass_state
def command(
    state: CommandState,
    age: str | None,
    rules: bool,
    kinds: tuple[str, ...],
    states: tuple[str, ...],
    labels: tuple[str, ...],
    archive: Path | None,
    vacuum: bool,
    dry_run: bool,
    yes: bool,
) -> int:
    """Remove records that have been kept long enough, and leave a stub in the place of each.

    Shows what would go, and asks at the terminal first. Records are jobs, sessions, tickets and work units, each with
    its questions and messages; also days of schedules, messages to people, logins and devices that are over. The stub
    holds the number of events, the hash of the last one and the package's, so that `remit verify` still covers the
    rest. With --archive each one's evidence package is written and checked before anything of it goes. What runs or
    waits, has an open question, is damaged, or is needed by a fork or a later turn of a conversation stays. If the
    command is interrupted, run it again.
    """
    from remit.cli.values import pairs, seconds
    from remit.parts.retention.rule import KINDS, RetentionRule

    if bool(age) == rules:
        raise UsageError("give --before, or --rules", remedy="remit journal prune --before 365d --dry-run")
    if rules and (kinds or states or labels or archive):
        raise UsageError("with --rules, the rules say which records go", remedy="Give --before instead of --rules.")
    rule = None
    if age:
        seconds(age, "--before")
        chosen = tuple(kind for kind in KINDS if not kinds or kind in kinds)
        place = str(archive.absolute()) if archive is not None else ""
        rule = RetentionRule(keep=age, kinds=chosen, states=states, labels=pairs(labels, "--label"), archive=place)
    done = state.ask_here(
        lambda remit: _prune(state, remit, rule, dry_run=dry_run, vacuum=vacuum, yes=yes), code="unused", writes=True
    )
    state.show(done, _print)
    return exit_codes.DAMAGED if any(unit.code == "CHAIN_BROKEN" for unit in done.kept) else exit_codes.OK


async def _prune(
    state: CommandState, remit: Remit, rule: RetentionRule | None, *, dry_run: bool, vacuum: bool, yes: bool
) -> Pruning:
    from remit.parts.retention.rule import rule_for

    retention, now = remit.service.retention, remit.clock.now()
    rules = (rule,) if rule is not None else retention.rules
    prune = partial(retention.prune, lambda head: rule_for(rules, head, now))
    if not dry_run and not yes:
        if state.as_json or not state.output.interactive:
            raise UsageError("there is no terminal to ask at", remedy="Look with --dry-run, then give --yes.")
        doomed: Pruning = await prune(dry_run=True, compact=False)
        if doomed.pruned:
            _print(state, doomed)
            click.confirm("Remove them for good?", err=True, abort=True)
    done: Pruning = await prune(dry_run=dry_run, compact=vacuum)
    return done


def _print(state: CommandState, done: Pruning) -> None:
    from remit.cli.output import counted, one_line

    out = state.output.out
    for unit in done.pruned:
        package = f"  {unit.file}" if unit.file else ""
        out.line(f"{one_line(unit.stream)}  {unit.state}  {counted(unit.events, 'event')}{one_line(package)}")
    for kept_unit in done.kept:
        code = f"{kept_unit.code}: " if kept_unit.code else ""
        out.line(f"{one_line(kept_unit.stream)}  {out.style('stays', 'warn')}  {code}{one_line(kept_unit.why)}")
    events = sum(unit.events for unit in done.pruned)
    verb = "would be pruned" if done.dry_run else "pruned"
    out.line(f"{out.style('ok', 'ok')} {counted(len(done.pruned), 'record')} {verb}, {counted(events, 'event')}")
    if done.freed_bytes:
        state.note(f"the file is {done.freed_bytes} bytes smaller")
