from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.origins.readings import folded
from remit.origins.text_index import Needle, TextIndex, stands

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
