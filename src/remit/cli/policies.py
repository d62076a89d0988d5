"""The base of the commands about rules: the rules as written, the catalog they refer to, and their tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from remit.cli.context import MEMORY, CommandState
from remit.cli.output import one_line
from remit.codes import Code
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.policy.cases import TestResult
    from remit.policy.rules import Policy
    from remit.settings import Settings
    from remit.tools.meta import ToolMeta


_LARGEST: Final = 1_000_000
"""Characters of a file of rules that are read."""


def catalog(state: CommandState, *, live: bool) -> tuple[Settings, list[ToolMeta], tuple[ToolMeta, ...]]:
    """The settings, the tools that rules may speak of, and those that no catalog lists.

    The rules may be wrong, and no journal is made for it.

    `live`: modules are imported and servers started for it; otherwise the catalog is the one that was last listed.
    """
    from remit.cli.catalog_record import record
    from remit.cli.runner import run_async

    settings = state.settings()
    state.journal = MEMORY

    async def listed() -> tuple[list[ToolMeta], tuple[ToolMeta, ...]]:
        # Rules that cannot be understood would keep it from opening; they are what is to be looked at.
        async with state.remit(code="wanted" if live else "recorded", blank=True, flags={"policy.rules": []}) as remit:
            if live:
                await record(remit)
            return await remit.service.tools.metas(), tuple(remit.service.policy.unlisted)

    return settings, *run_async(lambda _stop: listed())


def test_results(settings: Settings, tools: Sequence[ToolMeta]) -> list[TestResult]:
    """Return what the rules say to their tests. Raises PolicyError."""
    from remit.policy.cases import run_tests

    return run_tests(configured(settings), tools, settings.policy.tests)


def configured(settings: Settings) -> Policy:
    """The policy of the settings. Raises PolicyError."""
    from remit.policy.groups import parse_groups
    from remit.policy.pots import filled
    from remit.policy.rules import Policy

    policy = settings.policy
    return Policy.parse(filled(policy.rules, policy.pots), taint=policy.taint, groups=parse_groups(policy.groups))


def rules_in(file: Path) -> tuple[dict[str, Any], ...]:
    """The raw `[[policy.rules]]` of a TOML file. Raises UsageError."""
    return tuple(policy_in(file)["rules"])


def policy_in(file: Path) -> dict[str, Any]:
    """The table `policy` of a TOML file, which has rules. Raises UsageError."""
    import tomllib

    try:
        if not file.is_file():
            raise UsageError(f"--policy: {file} is not a file", remedy="Name a TOML file with [[policy.rules]].")
        with file.open("rb") as opened:
            document = tomllib.loads(opened.read(_LARGEST + 1).decode()[:_LARGEST])
    except (OSError, ValueError) as error:  # which TOML and Unicode errors are, too
        raise UsageError(f"--policy: {file}: {error}", code=Code.INVALID_INPUT, remedy="Correct the file.") from error
    table = document.get("policy")
    rules = table.get("rules") if isinstance(table, dict) else None
    if not isinstance(rules, list) or not rules or not all(isinstance(rule, dict) for rule in rules):
        raise UsageError(f"--policy: {file} holds no [[policy.rules]]", remedy="Add rules that deny or ask.")
    return {**(table or {}), "rules": rules}


def failed_tests(state: CommandState, results: Sequence[TestResult]) -> None:
    """Print every test that failed, and how many passed."""
    out = state.output.out
    for result in results:
        if not result.passed:
            case = result.case
            what = f"test {case.number} ({one_line(case.tool)}): {one_line(result.problem)}"
            out.line(f"{out.style('failed', 'failed')} {what}")
    if results:
        passed = sum(result.passed for result in results)
        out.line(f"{passed} of {len(results)} tests passed")


def results_json(results: Sequence[TestResult]) -> list[dict[str, Any]]:
    """Results as `--json` prints them."""
    return [
        {
            "number": result.case.number,
            "tool": result.case.tool,
            "passed": result.passed,
            "problem": result.problem,
            "decision": result.decision,
        }
        for result in results
    ]
