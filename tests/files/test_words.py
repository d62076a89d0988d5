from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.files.words import apart, compounds, query_words, spaced, stem, words


def test_words_are_lower_case_and_free_of_signs() -> None:
    assert words("Don't panic: the ANSWER is (42).") == ["don", "t", "panic", "the", "answer", "is", "42"]


def test_names_are_taken_apart() -> None:
    assert words("CancelledError wait_for getUserName HTTPServer") == [
        "cancelled",
        "error",
        "wait",
        "for",
        "get",
        "user",
        "name",
        "httpserver",
    ]
    assert apart("CancelledError") == "Cancelled Error"


def test_unspaced_script_is_cut_into_pairs() -> None:
    assert words("任务取消 ok 字 取消") == ["任务", "务取", "取消", "ok", "字", "取消"]


def test_a_question_is_reduced_to_what_it_asks_about() -> None:
    assert query_words("How does asyncio cancel a task?") == ["asyncio", "cancel", "task"]
    assert query_words("Please explain the task, the TASK") == ["task"]


def test_a_question_of_stop_words_keeps_them() -> None:
    assert query_words("to be or not to be") == ["to", "be", "or", "not"]


def test_names_in_a_question_are_known_as_wholes() -> None:
    assert compounds("does lru_cache raise CancelledError or __init__?") == ["lru_cache", "cancellederror"]


def test_an_index_sees_unspaced_script_character_by_character() -> None:
    assert spaced("取消x").split() == ["取", "消", "x"]
    assert spaced("plain text") == "plain text"


@pytest.mark.parametrize(
    "family",
    [
        "cancel cancels cancelled cancelling cancellation",
        "task tasks",
        "run running runs",
        "process processes processing processed",
        "query queries",
        "iterate iterates iterating iterated iterator iteration",
        "recursion recursive recurse",
        "file files",
        "cache caches caching cached",
    ],
)
def test_forms_of_a_word_meet_in_one_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


def test_different_words_keep_different_stems() -> None:
    different = words("class clamp process proceed event even string strip thread three address add")
    assert len({stem(word) for word in different}) == len(different)


@pytest.mark.slow
@given(st.text())
def test_a_stem_is_never_longer_than_its_word_nor_empty(text: str) -> None:
    for word in words(text):
        assert 0 < len(stem(word)) <= len(word)
