from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.files.text import ReadableText, decode, is_prose, readable, suffix_of

characters = st.text(st.characters(exclude_categories=["Cs", "Cc"]))


@given(characters)
def test_utf8_comes_back_as_it_was(text: str) -> None:
    assert decode(text.encode()) == text.removeprefix("\ufeff")


@given(characters.filter(lambda text: not text.startswith(("\0", "\ufeff"))))
@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_is_no_part_of_the_text(mark: bytes, encoding: str, text: str) -> None:
    assert decode(mark + text.encode(encoding)) == text


def test_line_ends_stay_as_they_are() -> None:
    assert decode(b"a\r\nb\rc\n") == "a\r\nb\rc\n"


@pytest.mark.parametrize("data", [b"a\0b", b"\x7fELF\x02\x01\x01\0", b"\x89PNG\r\n\x1a\n", b"\xff\xfe\x00"])
def test_binary_is_no_text(data: bytes) -> None:
    assert decode(data) is None


def test_bytes_in_no_declared_encoding_are_not_guessed() -> None:
    assert decode("café".encode("latin-1")) is None


def test_a_declared_encoding_is_used() -> None:
    assert decode("# -*- coding: latin-1 -*-\n# café".encode("latin-1")) == "# -*- coding: latin-1 -*-\n# café"
    page = '<meta charset="windows-1252"><p>caf\xe9'
    assert decode(page.encode("cp1252")) == page


@pytest.mark.parametrize("name", ["hex", "rot13", "punycode", "unicode_escape", "utf-7", "no-such-thing", "idna"])
def test_a_declared_transformation_is_not_run(name: str) -> None:
    assert decode(f"# coding: {name}\n".encode() + b"\xe9") is None


def test_utf16_that_hides_nul_characters_or_lone_surrogates_is_no_text() -> None:
    assert decode(codecs.BOM_UTF16_LE + "a\0".encode("utf-16-le")) is None
    assert decode(codecs.BOM_UTF16_LE + b"\x00\xd8") is None


def test_a_page_is_read_as_its_text_and_other_files_as_they_are() -> None:
    page = b"<title>T</title><p>One &amp; two"
    assert readable("a/page.HTML", page) == ReadableText("One & two", "T")
    assert readable("a/page.txt", page) == ReadableText(page.decode(), "")
    assert readable("a/page.html", b"\0") is None


def test_a_control_character_costs_a_page_its_place_alone() -> None:
    assert readable("a.html", b"<p>one\x1a two") == ReadableText("one\x1a two", "")
    assert readable("a.txt", b"one\x1a two") is None
    assert readable("a.txt", b"one\r\n\x1a") == ReadableText("one\r\n\x1a", "")  # how DOS ends a file


def test_a_page_nested_deeper_than_pages_are_is_not_read() -> None:
    assert readable("a/page.html", b"<i>" * 2_100 + b"text") is None


@pytest.mark.parametrize(
    ("path", "suffix"), [("a/b.PY", ".py"), ("a.b/c", ""), (".profile", ""), ("x.tar.gz", ".gz"), ("", "")]
)
def test_the_suffix_of_a_path(path: str, suffix: str) -> None:
    assert suffix_of(path) == suffix


def test_prose_is_told_by_its_suffix() -> None:
    assert is_prose("docs/guide.md")
    assert is_prose("page.html")
    assert not is_prose("tasks.py")
    assert not is_prose("Makefile")
