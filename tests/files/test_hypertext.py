from __future__ import annotations

import html
from contextlib import suppress
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.files.hypertext import TooDeepError, page_text

plain = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp", "Cn", "Co"]), min_size=1)


def text(source: str) -> str:
    return page_text(source).text


def test_paragraphs_and_headings_are_parted_by_an_empty_line() -> None:
    assert text("<h1>One</h1><p>Two\n  three</p><p>Four") == "One\n\nTwo three\n\nFour"


def test_inline_elements_part_nothing() -> None:
    assert text("a<b>b</b>c <i>d</i> <a href='x'>e</a>") == "abc d e"


def test_a_break_ends_a_line_and_a_cell_a_word() -> None:
    assert text("one<br>two<table><tr><td>a</td><td>b</td></tr></table>") == "one\ntwo\n\na b"


def test_what_is_not_for_reading_is_left_out() -> None:
    assert (
        text("<style>p{}</style>a<script>if (1 < 2) '</p>'</script>b<!-- no <p> -->c<svg><text>x</text></svg>d")
        == "abcd"
    )


@pytest.mark.parametrize(
    ("source", "seen", "hidden"),
    [
        ("<p>VIS</p><p hidden>HID</p>", "VIS", 3),
        ('<p hidden="until-found">VIS</p>', "VIS", 0),
        ('<p style="color: red; DISPLAY : none !important">HID<b>IN</b></p>VIS', "VIS", 5),
        (
            '<p style="visibility: hidden">HID</p><p style="font-size:0">HID</p><p style="font-size:0.8em">VIS</p>',
            "VIS",
            6,
        ),
        ("<dialog>HID</dialog><dialog open>VIS</dialog>", "VIS", 3),
        ("<div hidden><p>HID</p><div>HID</div></div>VIS<script>none</script>", "VIS", 6),
        (
            "<math><mi>E</mi><mo>=</mo><mi>m</mi><annotation encoding='tex'>E=m</annotation></math>",
            "E=m",
            0,
        ),
        ('<input value="VIS"> <input type="hidden" value="H"><input type="password" value="H">', "VIS", 0),
        ("<select><option>ONE</option><option>TWO</option></select><textarea>VIS</textarea>", "ONE\n\nTWO\n\nVIS", 0),
    ],
)
def test_what_a_person_does_not_see_is_left_out_and_counted(source: str, seen: str, hidden: int) -> None:
    page = page_text(source)
    assert (page.text.strip(), page.hidden) == (seen, hidden)


def test_character_references_are_resolved_once() -> None:
    assert text("&lt;b&gt; &amp;lt; caf&eacute; &#65;") == "<b> &lt; café A"


def test_the_title_is_kept_apart() -> None:
    page = page_text("<head><title> A &amp;\n B </title></head><body>text")
    assert page.title == "A & B"
    assert page.text == "text"


def test_preformatted_text_keeps_its_blanks() -> None:
    assert text("<pre>a\n    b</pre> c  d") == "a\n    b\n\nc d"


def test_a_bracket_in_a_quoted_attribute_ends_no_tag() -> None:
    assert text("<a title=\"a > b\" href='>'>link</a>") == "link"


def test_an_apostrophe_in_an_unquoted_attribute_swallows_nothing() -> None:
    assert text("<p title=it's>one</p><p>don't</p>") == "one\n\ndon't"


def test_an_empty_comment_ends_at_once() -> None:
    assert text("a<!-->b<!-- x -->c<!---->d") == "abcd"


def test_a_lone_bracket_is_text() -> None:
    assert text("1 < 2 and 3 <4") == "1 < 2 and 3 <4"


@pytest.mark.parametrize(
    "part",
    [
        "<!--",
        "<",
        "</",
        '<a b="',
        "<a ",
        "<![CDATA[",
        "<!",
        "&",
        "<script>",
        "<title>",
        "= '",
        "<div>",
        "<p><b>",
        "<i></b>",
    ],
)
def test_hostile_markup_costs_no_more_than_its_length(part: str) -> None:
    source = part * (1_000_000 // len(part))
    before = process_time()
    with suppress(TooDeepError):
        page_text(source)
    assert process_time() - before < 3  # the standard library's parser and others take minutes for some of these


def test_a_page_is_read_whole_or_not_at_all_however_deep() -> None:
    assert text("<i>" * 1_900 + "deep" + "</i>" * 1_900 + "<p>end") == "deep\n\nend"
    with pytest.raises(TooDeepError):
        text("<i>" * 2_100 + "deep" + "</i>" * 2_100 + "<p>end")


def test_a_paragraph_in_preformatted_text_keeps_its_blanks() -> None:
    assert text("<pre>a  b<p>c  d</p></pre> e  f") == "a  b\n\nc  d\n\ne f"


def test_a_page_in_pieces_of_the_parser_is_one_text() -> None:
    source = "".join(f"<p title='{n}'>é{n} &amp;</p>" for n in range(5_000))
    assert text(source) == "\n\n".join(f"é{n} &" for n in range(5_000))


def test_what_a_page_declares_of_its_bytes_does_not_count_for_text() -> None:
    assert text("<?xml version='1.0' encoding='latin-1'?><meta charset='latin-1'><p>é") == "é"


@given(plain)
def test_text_without_markup_comes_back(source: str) -> None:
    assert text(html.escape(source)) == source


@given(st.text(st.sampled_from("<>/!-\"'= apbrscript&;\n"), max_size=60))
def test_any_markup_gives_some_text(source: str) -> None:
    assert isinstance(text(source), str)
