from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.origins.text_index import Needle, TextIndex, folded, stands, strict, unescaped, wide

ALPHABET = "ab1 .-/@_\n\u00e9\u0130\u4e2d"
FILLER = "word " * 1_637
"""Two characters short of a block, so that what follows crosses into the next one."""


def found(text: str, needle: Needle) -> list[int]:
    index = TextIndex()
    index.add(text, 0)
    return [hit.start for hit in index.find(needle)]


def plain(text: str, needle: Needle) -> list[int]:
    """The same without an index."""
    wanted = folded(needle.text) if needle.any_case else needle.text
    text = folded(text) if needle.any_case else text
    places = [at for at in range(len(text)) if wanted and text.startswith(wanted, at)]
    return [at for at in places if stands(text, at, at + len(wanted), needle.loose)]


@given(st.text(ALPHABET, max_size=40), st.text(ALPHABET, max_size=6), st.booleans(), st.sampled_from(["", "/", "@/"]))
def test_the_index_finds_what_a_plain_search_finds(text: str, wanted: str, any_case: bool, loose: str) -> None:
    needle = Needle(wanted, any_case=any_case, loose=loose)
    assert found(text, needle) == plain(text, needle)


@given(st.text(ALPHABET, max_size=60), st.data())
def test_what_crosses_from_one_block_into_the_next_is_found(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    wanted = text[start : data.draw(st.integers(start, len(text)))]
    assert found(FILLER + text, Needle(wanted)) == plain(FILLER + text, Needle(wanted))


@pytest.mark.parametrize("words", [80, 100, 1_500, 3_000])
def test_a_text_longer_than_the_overlap_or_a_block_is_found(words: int) -> None:
    wanted = " ".join(f"item{number}" for number in range(words))
    assert found(f"{FILLER}{wanted} and more", Needle(wanted)) == [len(FILLER)]
    assert found(f"{FILLER}{wanted}s and more", Needle(wanted)) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("send it to bob@example.com.", "bob@example.com"),
        ("<bob@example.com>, and", "bob@example.com"),
        ('{"id":7}', "7"),
        ("issue #7, please", "7"),
        ("[7,8]", "8"),
        ("see (docs/start.md)", "docs/start.md"),
        ("请付给张三。", "张三"),
    ],
)
def test_a_value_that_stands_by_itself_is_found(text: str, wanted: str) -> None:
    assert found(text, Needle(wanted))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("jim.bob@example.com", "bob@example.com"),
        ("not-bob@example.com", "bob@example.com"),
        ("bob@example.com.evil.org", "bob@example.com"),
        ("bob@example.community", "bob@example.com"),
        ("version 1.7", "7"),
        ("at 7:30", "7"),
        ("2026-07-17", "17"),
        ("x_7", "7"),
        ("/etc/docs/start.md", "docs/start.md"),
        ("docs/start.md.bak", "docs/start.md"),
    ],
)
def test_a_part_of_a_longer_name_is_not_found(text: str, wanted: str) -> None:
    assert found(text, Needle(wanted)) == []


def test_case_counts_unless_it_does_not() -> None:
    assert found("ABC-12", Needle("abc-12")) == []
    assert found("ABC-12", Needle("abc-12", any_case=True)) == [0]


def test_a_hit_names_the_text_that_holds_it() -> None:
    index = TextIndex()
    index.add("nothing here", 1)
    index.add("the key is here", 2)
    index.add("the key again", 3)
    assert [hit.source for hit in index.find(Needle("key"))] == [2, 3]


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
