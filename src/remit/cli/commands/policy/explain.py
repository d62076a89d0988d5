"""`remit policy explain`: what the rules make of a call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import catalog_option, json_option, live_option, pass_state
from remit.cli.output import one_line
from remit.cli.values import json_object

if TYPE_CHECKING:
    from remit.policy.decision import CallerKind
    from remit.policy.explain import Considered, Explanation


@click.command("explain")
@click.argument("tool", shell_complete=complete.tools)
@click.option("--args", "args_text", default="{}", metavar="JSON|@FILE", help="The call's arguments.")
@click.option("--as", "principal", default="", metavar="NAME", help="The caller. Default: you.")
@click.option("--recipe", default="", metavar="NAME", help="The recipe whose job makes the call.")
@click.option(
    "--kind",
    type=click.Choice(["job", "plan", "session", "ticket", "http", "mcp"]),
    help="The kind of caller. Default: job with --recipe, else session.",
)
@click.option(
    "--given",
    "facts",
    default="{}",
    metavar="JSON|@FILE",
    help="Other facts: at, input, seen and taken, as in [[policy.tests]].",
)
@catalog_option
@live_option
@json_option("the decision, and the part of every rule in it")
@pass_state
def command(
    state: CommandState,
    tool: str,
    args_text: str,
    principal: str,
    recipe: str,
    kind: str | None,
    facts: str,
    live: bool,
) -> int:
    """Explain what the rules decide for a call.

    Shows the decision, then every rule in the order of the file: whether it matched, and why not. You may leave out
    arguments. Exits with status 2 if the call is impossible: the tool is unknown or does not take the arguments.
    """
    args, known = json_object(args_text, "--args"), json_object(facts, "--given")
    chosen = cast("CallerKind", kind or ("job" if recipe else "session"))

    own = "" if state.server else state.settings().app.principal

    explanation = state.ask(
        lambda remit: remit.service.policy.explain(
            tool, args, principal=principal or own, kind=chosen, recipe=recipe, given=known
        ),
        code="needed" if live else "recorded",
        blank=True,
    )
    state.show(explanation, partial(_print, tool))
    return exit_codes.USAGE if explanation.problems else exit_codes.OK


def _print(tool: str, state: CommandState, explanation: Explanation) -> None:
    from remit.cli.tables import TableColumn, fields, table

    out, decision = state.output.out, explanation.decision
    out.line(f"{out.style(decision.effect, decision.effect)}  {one_line(tool)}")
    people = ", ".join(decision.approvers)
    ask: list[tuple[str, str]] = []
    if decision.effect == "ask":
        ask = [("approvals", str(decision.approvals)), ("by", one_line(people) or "anybody")]
    default = f"{explanation.default.effect} ({explanation.default.rule_id})"
    fields(
        out,
        [
            *(("impossible", one_line(problem)) for problem in explanation.problems),
            ("rule", decision.rule_id),
            ("why", one_line(decision.reason)),
            *ask,
            ("level", explanation.level or "unknown tool"),
            ("without rules", default),
            ("if untrusted", _tainted(explanation)),
        ],
    )
    columns = ("RULE", TableColumn("EFFECT", states=True), "PART", TableColumn("WHY", whole=False))
    rows = [_row(entry) for entry in (*explanation.considered, *explanation.remembered)]
    if rows:
        out.line()
    table(out, columns, rows, indent=2)


def _tainted(explanation: Explanation) -> str:
    """Return what untrusted text among the arguments would change; empty if none of them matters."""
    if explanation.tainted is None:
        return ""
    arguments = ", ".join(dict.fromkeys(one_line(authority.path) for authority in explanation.authority))
    return (
        f"{explanation.tainted.effect} ({explanation.tainted.rule_id}), if an agent got {arguments} from untrusted text"
    )


def _row(considered: Considered) -> tuple[Any, ...]:
    return considered.rule_id, considered.effect, considered.part, considered.why
