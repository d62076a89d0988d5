from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.parts.recipes.gather import QuotableText, numbers

PAGE = (
    "It\u2019s open from 6:30 to 21:00,\n\nand it “never” costs  more than 12.50 euros. It is not allowed to run."
    " 池は六時から開いています。"
)


@pytest.mark.parametrize(
    "quotation",
    [
        "open from 6:30 to 21:00, and it",
        "It's open from 6:30",
        '"never" costs more than 12.50 euros.',
        "  “It is not allowed to run.” ",
        "… costs more than 12.50",
        "六時から開いて",
    ],
)
def test_what_stands_there_is_found_whatever_its_blanks_and_quotation_marks(quotation: str) -> None:
    span = QuotableText(PAGE).find(quotation)
    assert span is not None
    assert PAGE[span.start : span.end].split()


@pytest.mark.parametrize(
    "quotation",
    [
        "open from 6:30 to 22:00",
        "It is allowed to run.",
        "never costs more than 12.50 euros",
        "costs more than 12",
        "costs more than 1",
        "pen from 6:30 to 21:00",
        "Open from 6:30 to 21:00",
        "more euros than 12.50",
        "open",
        "",
        "… “”",
    ],
)
def test_what_differs_in_a_word_a_number_or_a_part_of_one_is_not(quotation: str) -> None:
    assert QuotableText(PAGE).find(quotation) is None


@given(st.text(st.sampled_from("ab1 .,'\u2019\n\u6c60"), min_size=30, max_size=80), st.data())
def test_a_span_holds_the_words_of_the_quotation(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    quotation = text[start : data.draw(st.integers(start, len(text)))]
    span = QuotableText(text).find(quotation)
    if span is not None:
        found = " ".join(text[span.start : span.end].replace("\u2019", "'").split())
        assert found == " ".join(quotation.split()).replace("\u2019", "'").strip("'\" …")


def test_numbers_are_those_that_are_written() -> None:
    assert numbers("From 6:30 to 21:00, 12.50 euros, 1,000 people in 2024.") == {
        "6", "30", "21", "00", "12.50", "1,000", "2024",
    }  # fmt: skip
