import re

import pytest

from remit.jobs.plans.check import FieldReader, listed
from remit.jobs.plans.problem import Findings, Marks


@pytest.fixture
def findings() -> Findings:
    return Findings(Marks())


def test_a_field_of_the_right_form_is_read_without_a_problem(findings: Findings) -> None:
    read = FieldReader(findings)
    schema = {"properties": dict.fromkeys(("id", "limit", "pause", "mode"))}
    fields = read.fields({"id": "a", "limit": 3, "pause": "2s", "mode": "fast"}, (), schema)
    assert read.name(fields, "id", ()) == "a"
    assert read.number(fields, "limit", (), 1, 10) == 3
    assert read.duration(fields, "pause", ()) == 2_000
    assert read.choice(fields, "mode", (), ("fast", "slow"), "slow") == "fast"
    assert findings.problems == []


def test_a_field_that_is_left_out_has_its_default(findings: Findings) -> None:
    read = FieldReader(findings)
    assert read.text({}, "title", ()) == ""
    assert read.number({}, "limit", (), 7, 10) == 7
    assert read.duration({}, "pause", ()) is None
    assert findings.problems == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"limit": 11}, "a whole number from 1 to 10"),
        ({"limit": True}, "a whole number from 1 to 10"),
    ],
)
def test_a_wrong_field_is_a_problem_and_its_default_stands_in(
    findings: Findings, fields: dict[str, object], expected: str
) -> None:
    assert FieldReader(findings).number(fields, "limit", (), 7, 10) == 7
    [problem] = findings.problems
    assert problem.expected == expected


def test_an_unknown_word_is_a_problem_that_names_the_nearest_one(findings: Findings) -> None:
    read = FieldReader(findings)
    assert read.word({"tool": "fs.raed"}, "tool", (), re.compile(r"[a-z.]+"), "a tool", {"fs.read"}) == "fs.raed"
    [problem] = findings.problems
    assert "fs.read" in problem.expected


def test_names_are_listed_as_in_a_sentence() -> None:
    assert listed(["tool", "recipe"]) == "`tool` and `recipe`"
