import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from remit.policy import cases, decision, expression, groups, levels, limit, lint, readings, rule, rules
from remit.policy import condition as window
from remit.policy import rule as when
from tests.policy.samples import SHOP, TOOLS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/policy.md").read_text(encoding="utf-8")
EXAMPLES = sorted((ROOT / "examples/policy").glob("*.toml"))


def policy_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["policy"]
    return found


def section(title: str) -> str:
    found = re.search(rf"^#+ {title}$(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no section {title}"
    return found[1]


def first_cells(text: str) -> list[str]:
    """The code in the first cell of every row."""
    return [
        name for line in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`([^`]+)`", line)
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_passes_its_own_tests(path: Path) -> None:
    raw = policy_of(path)
    policy = rules.Policy.parse(raw["rules"], groups=groups.parse_groups(raw.get("groups", {})))
    results = cases.run_tests(policy, [*TOOLS, *SHOP], raw["tests"])
    assert results
    assert [result.problem for result in results if not result.passed] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_has_a_test_for_every_rule_and_no_findings(path: Path) -> None:
    raw = policy_of(path)
    assert {one["id"] for one in raw["rules"]} <= {test.get("rule") for test in raw["tests"]}
    assert lint.lint(raw["rules"], [*TOOLS, *SHOP], groups.parse_groups(raw.get("groups", {}))) == []


def test_the_page_lists_every_example_and_shows_one_as_it_is() -> None:
    assert sorted(re.findall(r"^\| \[([\w-]+\.toml)\]", section("Examples"), re.MULTILINE)) == [
        path.name for path in EXAMPLES
    ]
    assert re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL) == [
        (ROOT / "examples/policy/documentation.toml").read_text(encoding="utf-8")
    ]


def test_every_key_of_a_rule_is_listed() -> None:
    assert sorted(first_cells(section("A rule"))) == sorted(rule.KEYS)


def test_every_word_of_a_condition_is_listed() -> None:
    listed = " ".join(first_cells(section("Conditions")))
    for word in (*expression.ROOTS, expression.SEEN, *expression.FUNCTIONS, *expression.COMPARISONS):
        assert word in listed, word


def test_every_key_of_a_time_and_a_limit_is_named() -> None:
    assert all(f"`{key}" in section("Times") or f"{key} =" in section("Times") for key in window.KEYS)
    assert all(f"`{key}`" in section("Limits") for key in limit.KEYS)


def test_every_operator_is_listed() -> None:
    assert sorted(first_cells(section("Constraints"))) == sorted(when.OPERATORS)


def test_every_key_of_a_test_is_listed() -> None:
    assert set(cases.KEYS) <= set(first_cells(section("Tests and lint")))


def test_every_finding_is_listed_with_its_severity_and_meaning() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (error|warning) \| (.*?) \|$", section("Tests and lint"), re.MULTILINE)
    assert {kind: meaning for kind, _, meaning in rows} == lint.KINDS
    assert {kind for kind, severity, _ in rows if severity == "error"} == lint.ERRORS


def test_every_default_is_listed_with_its_decision() -> None:
    rows = re.findall(r"\| (allow|ask|deny) \| `(default:.*?)` \|", section("Defaults"))
    expected = {(one.effect, one.rule_id) for one in levels.DEFAULTS} | {("deny", rules.ERROR_ID)}
    assert set(rows) == expected


def test_every_kind_of_caller_is_named() -> None:
    assert all(f"`{kind}:" in section("Callers") for kind in decision.CALLER_KINDS)


def test_the_length_on_the_page_is_the_one_in_force() -> None:
    assert f"{readings.MAX_TEXT // 1024} KiB" in PAGE
