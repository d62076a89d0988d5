from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.origins.readings import folded, strict, unescaped, wide


@given(st.text())
def test_folding_keeps_every_character_in_its_place(text: str) -> None:
    assert len(folded(text)) == len(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_escapes_of_json_are_read(text: str) -> None:
    assert unescaped(json.dumps(text)[1:-1]) == text
    assert strict(json.dumps(text)[1:-1], is_json=True) == strict(text)


@given(st.text("abc.@/ \u00e9", min_size=1))
def test_percent_encoding_is_read_widely_once_and_twice(text: str) -> None:
    assert wide(quote(text)) == wide(quote(quote(text))) == wide(text)


@pytest.mark.parametrize(
    "written",
    [
        "BOB@EXAMPLE.COM",
        "bob%40example.com",
        "bob&#64;example.com",
        "bob\\u0040example.com",
        "b\u200bob@exam\u00adple.com",
        "\uff42\uff4f\uff42@example.com",
        "bob%2540example.com",
    ],
)
def test_ways_to_write_an_address_are_read_widely_and_not_strictly(written: str) -> None:
    assert folded(wide(written)) == "bob@example.com"
    assert strict(written) != "bob@example.com"


def test_composed_characters_are_the_same_strictly() -> None:
    assert strict("cafe\u0301") == strict("caf\u00e9")


def test_half_of_a_pair_of_surrogates_stays() -> None:
    assert unescaped("a\\ud800b") == "a\\ud800b"
