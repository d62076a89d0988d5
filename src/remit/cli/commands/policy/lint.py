"""`remit policy lint`: what is wrong with the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import catalog_option, json_option, live_option, pass_state

if TYPE_CHECKING:
    from remit.policy.lint import Finding


@click.command("lint")
@catalog_option
@live_option
@json_option("findings and test results")
@pass_state
def command(state: State, live: bool) -> int:
    """Find wrong and redundant rules, and run the tests.

    Exits with status 2 if lint finds an error, and 1 if a test fails.
    """
    from remit.cli.policies import catalog, failed_tests, results_json, test_results
    from remit.policy.groups import parse_groups
    from remit.policy.lint import lint

    settings, tools = catalog(state, live=live)
    findings = lint(settings.policy.rules, tools, parse_groups(settings.policy.groups))
    wrong = any(finding.severity == "error" for finding in findings)
    # Rules that cannot be understood make no policy that could be tested.
    results = [] if any(finding.kind == "invalid" for finding in findings) else test_results(settings, tools)
    if state.as_json:
        state.output.json({"findings": findings, "tests": results_json(results)})
    else:
        _print(state, findings, len(settings.policy.rules))
        failed_tests(state, results)
    if wrong:
        return exit_codes.USAGE
    return exit_codes.OK if all(result.passed for result in results) else exit_codes.ERROR


def _print(state: State, findings: list[Finding], rules: int) -> None:
    from remit.cli.text import counted, one_line

    out = state.output.out
    for finding in findings:
        severity = out.style(finding.severity, "fail" if finding.severity == "error" else "warn")
        out.line(f"{severity} {finding.kind}: rule {one_line(finding.rule_id)} {one_line(finding.message)}")
        if finding.remedy:
            out.line(f"  {out.style('->', 'cyan')} {one_line(finding.remedy)}")
    if not findings:
        out.line(f"{out.style('ok', 'ok')} {counted(rules, 'rule')}, no findings")
