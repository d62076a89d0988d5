from __future__ import annotations

import re
from pathlib import Path

import pytest

from remit.codes import Code
from remit.jobs.plans.plan import (
    CONCURRENCY,
    INPUT,
    MAX_CONCURRENCY,
    MAX_ITEMS,
    MAX_ITEMS_CEILING,
    MAX_NODES,
    NODE,
    SCHEMA_VERSION,
    TASKGRAPH_V1,
    WAIT,
)
from remit.jobs.plans.problem import MAX_DEPTH, MAX_VALUES, InvalidPlanError, parse_duration
from remit.jobs.plans.references import RESULT_FIELDS
from remit.jobs.plans.source import MAX_BYTES, load_plan, parse_plan

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/plans.md").read_text(encoding="utf-8")
LEFT_OUT = "where it is left out."
EXAMPLES = sorted((ROOT / "examples/plans").iterdir())


def section(title: str) -> str:
    found = re.search(rf"^##+ {title}$(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no section {title!r}"
    return found[1]


def fields(title: str) -> tuple[str, ...]:
    return tuple(re.findall(r"^\| `(\w+)` \|", section(title), re.MULTILINE))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(
    ("title", "known"),
    [
        ("The plan", tuple(TASKGRAPH_V1["properties"])),
        ("An input", tuple(INPUT["properties"])),
        ("A node", tuple(NODE["properties"])),
        ("A wait", tuple(WAIT["properties"])),
        ("Results", RESULT_FIELDS),
    ],
)
def test_every_field_is_listed_and_no_other(title: str, known: tuple[str, ...]) -> None:
    assert fields(title) == known


def test_every_example_is_on_the_page_and_valid() -> None:
    named = re.findall(r"^\| \[([\w.]+)\]\(\.\./examples/plans/\1\)", PAGE, re.MULTILINE)
    assert sorted(named) == [path.name for path in EXAMPLES]
    assert {load_plan(path).name for path in EXAMPLES} == {path.stem for path in EXAMPLES}


def test_the_first_example_is_the_file_it_says() -> None:
    assert blocks("yaml")[0] == (ROOT / "examples/plans/digest.yaml").read_text(encoding="utf-8")


def test_the_broken_plan_has_exactly_the_problems_shown() -> None:
    with pytest.raises(InvalidPlanError) as caught:
        parse_plan(blocks("yaml")[1], "broken.yaml")
    assert caught.value.message.splitlines() == blocks("text")[0].splitlines()


def test_every_code_on_the_page_exists_and_every_code_of_plans_is_there() -> None:
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", PAGE))
    assert named <= {code.name for code in Code}
    assert named >= {code.name for code in Code if code.name.startswith("PLAN_")}


@pytest.mark.parametrize(
    "row",
    [
        f"| bytes in a file | {MAX_BYTES:,} |",
        f"| objects and lists within one another | {MAX_DEPTH} |",
        f"| values | {MAX_VALUES:,} |",
        f"| nodes | {MAX_NODES:,} |",
        f"| `max_items` | 1 to {MAX_ITEMS_CEILING} | How long that list may be; {MAX_ITEMS} {LEFT_OUT} |",
        f"| `concurrency` | 1 to {MAX_CONCURRENCY} | How many items are under way at once; {CONCURRENCY} {LEFT_OUT} |",
        f"| `version` | `{SCHEMA_VERSION}` | Required. |",
    ],
)
def test_the_limits_on_the_page_are_those_in_force(row: str) -> None:
    assert row in PAGE.splitlines()


def test_the_durations_on_the_page_are_durations() -> None:
    (line,) = re.findall(r"^A \*duration\* is (.*)$", PAGE, re.MULTILINE)
    assert [text for text in re.findall(r"`(\w+)`", line) if parse_duration(text) is None] == []


def test_the_schema_is_where_the_page_says() -> None:
    assert f"{TASKGRAPH_V1['title']}" == SCHEMA_VERSION
    assert "`remit.jobs.plans.plan.TASKGRAPH_V1`" in PAGE
