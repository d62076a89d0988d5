"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re
from copy import copy, deepcopy

import pytest

from remit.regex import regex


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    word = regex(r"(?P<head>[a-z])[a-z]*", re.IGNORECASE)
    for _ in range(2):
        assert [match["head"] for match in word.finditer("One two")] == ["O", "t"]
    assert word.sub("-", "a b") == "- -"
    assert (word.pattern, word.groups) == (r"(?P<head>[a-z])[a-z]*", 1)
    assert regex(rb"\d+").findall(b"1 22") == [b"1", b"22"]


def test_it_is_compiled_with_its_first_use() -> None:
    wrong = regex("(")
    with pytest.raises(re.error, match="missing"):
        wrong.match("")


def test_a_copy_is_a_pattern_too() -> None:
    for pattern in (copy(regex("a(b)?")), deepcopy(regex("a(b)?"))):
        assert pattern.fullmatch("ab")
