"""`remit policy`: look at the rules, and at what they say to a call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, entries_below, show_help
from remit.cli.options import catalog_option, json_option, live_option, pass_state
from remit.cli.output import counted, one_line
from remit.cli.values import json_object
from remit.wiring.capabilities import FIRST_PARTY

if TYPE_CHECKING:
    from remit.policy.approval import Remembered
    from remit.policy.decision import CallerKind
    from remit.policy.explain import Considered, Explanation
    from remit.policy.lint import LintFinding
    from remit.policy.rule import Rule
    from remit.service.policy import PotView

COMMANDS: Final[dict[str, LazyCommand]] = {
    "lint": LazyCommand("Commands", "Find wrong and redundant rules, and run the tests."),
    "test": LazyCommand("Commands", "Run the tests of the rules."),
    "explain": LazyCommand("Commands", "Explain what the rules decide for a call."),
    "rules": LazyCommand("Commands", "List the rules and the remembered approvals."),
    "pots": LazyCommand("Commands", "Show how full the pots of rules are."),
    "revoke": LazyCommand("Commands", "End a remembered approval."),
    **entries_below("policy", FIRST_PARTY),
}


@click.group("policy", cls=LazyGroup, entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Check and explain the rules: who may call which tool, and who must approve.

    Rules are tables in remit.toml; see docs/policy.md.
    """
    show_help(context)


@command.command("rules")
@json_option("the rules and the remembered approvals")
@pass_state
def rules_command(state: CommandState) -> int:
    """List the rules and the remembered approvals.

    If no rule matches a call, the level of the tool decides: L0 runs, everything else asks a person.
    """
    from remit.cli.policies import configured

    rules = configured(state.settings()).rules
    remembered = state.ask_here(lambda remit: remit.service.approvals.active(), code="unused")

    def told(state: CommandState, _: object) -> None:
        _rules(state, rules)
        _remembered(state, remembered)

    return state.show({"rules": [rule.canonical() for rule in rules], "remembered": remembered}, told)


@command.command("pots")
@json_option("the pots")
@pass_state
def pots_command(state: CommandState) -> int:
    """Show how full the pots of rules are.

    A pot is a limit that several rules share: [policy.pots] in remit.toml; see docs/policy.md.
    """
    from remit.cli.tables import TableColumn, table

    def told(state: CommandState, pots: list[PotView]) -> None:
        rows = [(pot.pot, pot.words, pot.zone) for pot in pots]
        table(state.output.out, ("POT", TableColumn("TAKEN", whole=False), "ZONE"), rows)

    return state.show(state.ask(lambda remit: remit.service.policy.pots(), code="recorded"), told)


def _rules(state: CommandState, rules: tuple[Rule, ...]) -> None:
    from remit.cli.tables import TableColumn, table

    if not rules:
        state.note("No rules: read-only tools run, everything else needs approval")
    columns = (
        "RULE",
        TableColumn("EFFECT", states=True),
        TableColumn("ABOUT", whole=False),
        TableColumn("WHEN", whole=False),
    )
    rows = [(rule.id, rule.effect, _about(rule), _when(rule)) for rule in rules]
    table(state.output.out, columns, rows)


def _about(rule: Rule) -> str:
    parts = [*rule.tools, *(f"provider {name}" for name in rule.providers), *(f"level {name}" for name in rule.levels)]
    callers = f" for {', '.join(rule.callers)}" if rule.callers else ""
    return (", ".join(map(str, parts)) or "every tool") + callers


def _when(rule: Rule) -> str:
    from remit.policy.explain import written

    taint = [f"untrusted arguments: {rule.taint}"] if rule.taint else []
    return "; ".join([*(condition.removeprefix("when ") for condition in written(rule)), *taint])


def _remembered(state: CommandState, rules: list[Remembered]) -> None:
    from remit.cli.tables import TableColumn, moment, table

    if not rules:
        return
    out = state.output.out
    out.line()
    tool, scope, people = (TableColumn(title, whole=False) for title in ("TOOL", "FOR", "BY"))
    columns = ("REMEMBERED", tool, scope, people, "UNTIL")
    rows = [
        (
            rule.id,
            rule.tool if rule.args_digest else f"{rule.tool} with any arguments",
            f"{rule.principal} in {rule.stream or 'everything'}",
            ", ".join(rule.made_by),
            moment(rule.expires_at),
        )
        for rule in rules
    ]
    table(out, columns, rows)


@command.command("lint")
@catalog_option
@live_option
@json_option("findings and test results")
@pass_state
def lint_command(state: CommandState, live: bool) -> int:
    """Find wrong and redundant rules, and run the tests.

    Exits with status 2 if lint finds an error, and 1 if a test fails.
    """
    from remit.cli.policies import catalog, failed_tests, results_json, test_results
    from remit.policy.groups import parse_groups
    from remit.policy.lint import lint
    from remit.policy.pots import filled

    settings, tools, unlisted = catalog(state, live=live)
    known = [*tools, *unlisted]
    rules = filled(settings.policy.rules, settings.policy.pots)
    findings = lint(rules, tools, parse_groups(settings.policy.groups), unlisted)
    wrong = any(finding.severity == "error" for finding in findings)
    # Rules that cannot be understood make no policy that could be tested.
    results = [] if any(finding.kind == "invalid" for finding in findings) else test_results(settings, known)

    def told(state: CommandState, _: object) -> None:
        _print(state, findings, len(settings.policy.rules))
        failed_tests(state, results)

    state.show({"findings": findings, "tests": results_json(results)}, told)
    if wrong:
        return exit_codes.USAGE
    return exit_codes.OK if all(result.passed for result in results) else exit_codes.ERROR


def _print(state: CommandState, findings: list[LintFinding], rules: int) -> None:

    out = state.output.out
    for finding in findings:
        severity = out.style(finding.severity, "fail" if finding.severity == "error" else "warn")
        out.line(f"{severity} {finding.kind}: rule {one_line(finding.rule_id)} {one_line(finding.message)}")
        if finding.remedy:
            out.line(f"  {out.style('->', 'cyan')} {one_line(finding.remedy)}")
    if not findings:
        out.line(f"{out.style('ok', 'ok')} {counted(rules, 'rule')}, no findings")


@command.command("test")
@catalog_option
@live_option
@json_option("the results")
@pass_state
def test_command(state: CommandState, live: bool) -> int:
    """Run the tests of the rules.

    A `[[policy.tests]]` table in remit.toml holds a call and the decision you expect. Exits with status 1 if a decision
    differs.
    """
    from remit.cli.policies import catalog, failed_tests, results_json, test_results

    settings, tools, unlisted = catalog(state, live=live)
    results = test_results(settings, [*tools, *unlisted])
    state.show(results_json(results), lambda state, _: failed_tests(state, results))
    if not results:
        state.note("no tests: add [[policy.tests]] tables to remit.toml")
    return exit_codes.OK if all(result.passed for result in results) else exit_codes.ERROR


@command.command("revoke")
@click.argument("rule", metavar="ID")
@click.option("--reason", default="", help="The reason; it is recorded.")
@pass_state
def revoke_command(state: CommandState, rule: str, reason: str) -> int:
    """End a remembered approval.

    The calls that it covered ask a person again. `remit policy rules` lists the ids.
    """
    state.ask(lambda remit: remit.service.approvals.revoke(rule, reason=reason), code="unused", writes=True)
    state.note(f"{rule} is revoked")
    return exit_codes.OK


@command.command("explain")
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
def explain_command(
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
    state.show(explanation, partial(_print_explained, tool))
    return exit_codes.USAGE if explanation.problems else exit_codes.OK


def _print_explained(tool: str, state: CommandState, explanation: Explanation) -> None:
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
