from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.files.index.store import LONGEST, cut

texts = st.lists(
    st.one_of(
        st.sampled_from(
            ["\n", "\n\n", "# Head\n", "def f():\n", "class C:\n    ", "- item\n", "Head\n====\n", "\r\n", " ", "x. "]
        ),
        st.integers(1, 900).map(lambda n: "word " * n),
        st.integers(1, 4_000).map(lambda n: "y" * n),
    ),
    max_size=12,
).map("".join)


@given(texts, st.sampled_from(["a.py", "a.md"]))
def test_passages_cover_all_but_blanks_in_order_and_none_is_too_long(text: str, path: str) -> None:
    at = 0
    for passage in cut(path, text):
        assert passage.start >= at
        assert not text[at : passage.start].strip()
        assert 0 < passage.end - passage.start <= LONGEST
        assert text[passage.start : passage.end] == text[passage.start : passage.end].strip()
        at = passage.end
    assert not text[at:].strip()


def test_a_definition_begins_a_passage() -> None:
    body = "        pass  # something\n" * 20
    text = f"class Task:\n    def cancel(self):\n{body}\n    def wait(self):\n{body}"
    found = cut("a.py", text)
    assert [passage.heading for passage in found] == ["Task", "Task.wait"]
    assert found[0].names == "Task cancel"
    assert text[found[1].start :].startswith("def wait")


def test_small_definitions_share_a_passage() -> None:
    text = "def one():\n    pass\n\n\ndef two():\n    pass\n"
    [passage] = cut("a.py", text)
    assert passage.names == "one two"


def test_a_long_text_is_cut_after_a_paragraph() -> None:
    paragraph = "Some words of a sentence. " * 30
    text = "\n\n".join([paragraph.strip()] * 4)
    found = cut("a.md", text)
    assert len(found) > 1
    assert all(text[passage.start : passage.end].startswith("Some words") for passage in found)
    assert all(text[passage.start : passage.end].endswith("sentence.") for passage in found)


def test_a_passage_is_as_long_as_its_paragraphs_allow() -> None:
    paragraph = "Some words of a text. " * 16
    text = "\n\n".join([paragraph.strip()] * 9)
    assert [text[passage.start : passage.end].count("\n\n") for passage in cut("a.md", text)] == [3, 3, 0]


def test_a_long_list_is_cut_between_its_items() -> None:
    text = "".join(f"- item {n} with some more words\n  and a second line\n" for n in range(100))
    found = cut("a.md", text)
    assert len(found) > 1
    assert all(text[passage.start :].startswith("- item") for passage in found)


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_a_blank_text_has_no_passages(text: str) -> None:
    assert cut("a.md", text) == []
