"""Suggestions for misspelt names."""

from __future__ import annotations

import pytest

from remit.nearest import did_you_mean, nearest


def test_the_closest_names_come_first() -> None:
    assert nearest("serch", ["reach", "search"], most=2) == ["search", "reach"]
    assert nearest("serch", ["reach", "search"]) == ["search"]
    assert nearest("zzz", ["search"]) == []
    assert nearest("shop.credit", ["fs.edit"]) == []


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (["zzz"], ""),
        (["tool1"], "Did you mean `tool1`?"),
        (["tool1", "tool2"], "Did you mean `tool2` or `tool1`?"),
        (["tool1", "tool2", "tool3"], "Did you mean `tool3`, `tool2` or `tool1`?"),
    ],
)
def test_a_question_names_them(known: list[str], asked: str) -> None:
    assert did_you_mean("tool", known, most=3, around="`") == asked


def test_a_huge_name_costs_no_more_than_a_long_one() -> None:
    assert did_you_mean("x" * 10_000_000, ["search"]) == ""
