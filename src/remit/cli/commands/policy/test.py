"""`remit policy test`: do the rules say what they should?"""

from __future__ import annotations

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import catalog_option, json_option, live_option, pass_state


@click.command("test")
@catalog_option
@live_option
@json_option("the results")
@pass_state
def command(state: State, live: bool) -> int:
    """Run the tests of the rules.

    A `[[policy.tests]]` table in remit.toml holds a call and the decision you expect. Exits with status 1 if a decision
    differs.
    """
    from remit.cli.policies import catalog, failed_tests, results_json, test_results

    settings, tools = catalog(state, live=live)
    results = test_results(settings, tools)
    if state.as_json:
        state.output.json(results_json(results))
    else:
        failed_tests(state, results)
        if not results:
            state.note("no tests: add [[policy.tests]] tables to remit.toml")
    return exit_codes.OK if all(result.passed for result in results) else exit_codes.ERROR
