"""`remit policy rules`: what holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.policy.remembered import Remembered
    from remit.policy.rule import Rule


@click.command("rules")
@json_option("the rules and the remembered approvals")
@pass_state
def command(state: State) -> int:
    """List the rules and the remembered approvals.

    If no rule matches a call, the level of the tool decides: L0 runs, everything else asks a person.
    """
    from remit.cli.policies import configured
    from remit.cli.running import run_to_end

    settings = state.settings()
    rules = configured(settings).rules

    async def look() -> list[Remembered]:
        async with state.remit(code="unused") as remit:
            return await remit.service.approvals.active()

    remembered = run_to_end(look())
    if state.as_json:
        state.output.json({"rules": [rule.canonical() for rule in rules], "remembered": remembered})
    else:
        _rules(state, rules)
        _remembered(state, remembered)
    return exit_codes.OK


def _rules(state: State, rules: tuple[Rule, ...]) -> None:
    from remit.cli.tables import Column, table

    if not rules:
        state.note("No rules: read-only tools run, everything else needs approval")
    columns = (
        Column("RULE"), Column("EFFECT", states=True), Column("ABOUT", whole=False), Column("WHEN", whole=False)
    )  # fmt: skip
    rows = [(rule.id, rule.effect, _about(rule), _when(rule)) for rule in rules]
    table(state.output.out, columns, rows)


def _about(rule: Rule) -> str:
    parts = [*rule.tools, *(f"provider {one}" for one in rule.providers), *(f"level {one}" for one in rule.levels)]
    callers = f" for {', '.join(rule.callers)}" if rule.callers else ""
    return (", ".join(map(str, parts)) or "every tool") + callers


def _when(rule: Rule) -> str:
    from remit.policy.conditions import written

    taint = [f"untrusted arguments: {rule.taint}"] if rule.taint else []
    return "; ".join([*(one.removeprefix("when ") for one in written(rule)), *taint])


def _remembered(state: State, found: list[Remembered]) -> None:
    from remit.cli.tables import Column, moment, table

    if not found:
        return
    out = state.output.out
    out.line()
    columns = (
        Column("REMEMBERED"), Column("TOOL", whole=False), Column("FOR", whole=False), Column("BY", whole=False),
        Column("UNTIL"),
    )  # fmt: skip
    rows = [
        (
            one.id,
            one.tool if one.args_digest else f"{one.tool} with any arguments",
            f"{one.principal} in {one.stream or 'everything'}",
            ", ".join(one.made_by),
            moment(one.expires_at),
        )
        for one in found
    ]
    table(out, columns, rows)
