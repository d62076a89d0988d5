from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.files.index.rank import expression, prior, snippet


def test_a_question_becomes_quoted_words() -> None:
    assert expression("how does asyncio cancel a task?") == '"asyncio" OR "cancel" OR "task"'


def test_a_name_is_looked_for_whole_and_in_parts() -> None:
    assert expression("lru_cache") == '"lru_cache" OR "lru" OR "cache"'


def test_unspaced_script_is_looked_for_in_pairs() -> None:
    assert expression("取消务") == '"取  消" OR "消  务"'


def test_very_long_questions_are_cut() -> None:
    assert expression(" ".join(f"word{n}" for n in range(500))).count(" OR ") == 31


@given(st.text())
def test_nothing_in_a_question_acts_as_syntax(query: str) -> None:
    terms = expression(query)
    for term in terms.split(" OR ") if terms else []:
        assert term[0] == term[-1] == '"'
        assert '"' not in term[1:-1]
        assert "\0" not in term


@pytest.mark.parametrize(
    "path",
    ["test/a.py", "tests/a.py", "a/test_tasks.py", "a/tasks_test.go", "ui/list.spec.ts", "a/idle_test/x.py", "Test/x"],
)
def test_tests_explain_less(path: str) -> None:
    assert prior(path) < 1


@pytest.mark.parametrize("path", ["contest/a.py", "latest/a.md", "attestation.py", "docs/a.md", "asyncio/tasks.py"])
def test_what_only_looks_like_a_test_is_none(path: str) -> None:
    assert prior(path) == 1


def test_tests_among_examples_explain_least() -> None:
    assert prior("examples/tests/data.json") < prior("tests/a.py") < prior("data.json")


def test_a_snippet_begins_where_most_of_the_words_are() -> None:
    passage = "cancel " + "filler " * 60 + "cancel the\n    task now " + "more " * 60
    assert snippet("cancel a task", passage) == "… cancel the task now" + " more" * 44 + " …"


def test_a_snippet_without_a_match_is_the_beginning() -> None:
    assert snippet("whale", "word " * 100) == " ".join(["word"] * 48) + " …"


def test_the_end_of_a_passage_is_no_ellipsis() -> None:
    assert snippet("whale", "word " * 100 + "whale at last") == "… whale at last"


def test_of_equal_stretches_the_first_is_shown() -> None:
    assert snippet("whale", "filler " * 50 + "whale one " + "filler " * 50 + "whale two").startswith("… whale one")


def test_a_short_passage_is_its_own_snippet() -> None:
    assert snippet("words", "two\n  words here") == "two words here"
    exact = "x" * 120 + " " + "y" * 119
    assert snippet("x", exact) == exact
    assert snippet("x", exact + "y") == "x" * 120 + " …"


def test_a_word_longer_than_a_snippet_is_cut() -> None:
    assert snippet("x", "y" * 500 + " x") == "… x"
    assert snippet("z", "y" * 500) == "y" * 240


@given(st.text(), st.text())
def test_a_snippet_is_always_short_and_on_one_line(query: str, passage: str) -> None:
    shown = snippet(query, passage)
    assert len(shown) < 260
    assert len(shown.splitlines()) <= 1
