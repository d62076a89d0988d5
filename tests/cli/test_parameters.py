from __future__ import annotations

import datetime as dt
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit import Run, recipe
from remit.cli.parameters import plan_input, recipe_input
from remit.errors import UsageError
from remit.jobs.plans.check import read_plan
from remit.service.recipes import recipe_view

PLAN = read_plan(
    {
        "version": "taskgraph-v1",
        "name": "p",
        "inputs": {
            "file-name": {"type": "string"},
            "count": {"type": "integer"},
            "names": {"type": "array"},
            "options": {"type": "object"},
            "dry": {"type": "boolean"},
        },
        "nodes": [{"id": "a", "wait": {"timer": "1s"}}],
    }
)


@recipe("typed")
async def typed(
    run: Run,
    text: str,
    maybe: str | None = None,
    number: int = 0,
    flag: bool = False,
    words: list[str] | None = None,
    numbers: tuple[int, ...] = (),
    mapping: dict[str, int] | None = None,
    day: dt.date | None = None,
    choice: Literal["a", "b"] = "a",
    anything: Any = None,
) -> None:
    """Take one of everything."""


def read(*words: str) -> dict[str, Any]:
    return recipe_input(recipe_view(typed), words)


@settings(deadline=None)
@given(st.text())
def test_a_text_comes_through_as_it_is(text: str) -> None:
    assert read(f"--text={text}") == {"text": text}
    assert read("--text", text, "--maybe", text) == {"text": text, "maybe": text}


def test_values_are_read_as_json_where_the_type_is_no_text() -> None:
    found = read("--number", "-5", "--mapping", '{"a": 1}', "--anything", "[1, null]", "--day", "2026-01-02")
    assert found == {"number": -5, "mapping": {"a": 1}, "anything": [1, None], "day": "2026-01-02"}
    bound = typed.bind({"text": "x", **found}, strict=False)
    assert bound.input["day"] == "2026-01-02"


def test_a_list_is_given_item_by_item_or_as_json() -> None:
    assert read("--words", "a", "--words", "5") == {"words": ["a", "5"]}
    assert read("--words", '["a", "b"]') == {"words": ["a", "b"]}
    assert read("--numbers", "1", "--numbers", "2") == {"numbers": [1, 2]}


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["--flag"], True),
        (["--flag", "--text", "x"], True),
        (["--flag", "false"], False),
        (["--flag=no"], False),
        (["--no-flag"], False),
        (["--flag", "yes"], True),
    ],
)
def test_a_flag_stands_alone_or_with_its_value(words: list[str], value: object) -> None:
    assert read(*words)["flag"] is value


def test_dashes_and_underscores_are_the_same() -> None:
    assert plan_input(PLAN, ["--file-name", "x"]) == {"file-name": "x"}

    @recipe("dashed")
    async def dashed(run: Run, two_words: str) -> None:
        """Take one."""

    assert (
        recipe_input(recipe_view(dashed), ["--two-words", "x"])
        == recipe_input(recipe_view(dashed), ["--two_words", "x"])
        == {"two_words": "x"}
    )


def test_a_plans_inputs_are_read_by_their_declared_types() -> None:
    words = ["--count", "3", "--names", "a", "--names", "b", "--options", '{"x": 1}', "--dry", "--file-name", "7"]
    assert plan_input(PLAN, words) == {
        "count": 3,
        "names": ["a", "b"],
        "options": {"x": 1},
        "dry": True,
        "file-name": "7",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--text", "a", "--text", "b"], "given twice"),
        (["--txt", "a"], "no option --txt"),
        (["--text"], "needs a value"),
        (["stray"], "belongs to no option"),
        (["-q"], "belongs to no option"),
        (["--"], "belongs to no option"),
        (["--no-text"], "no option --no-text"),
    ],
)
def test_what_does_not_fit_is_named_and_the_parameters_listed(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        read(*words)
    assert "mapping" in caught.value.remedy
