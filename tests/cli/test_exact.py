from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.cli.output import cells
from remit.cli.question import ScreenRow, diff_rows, value_rows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.text("ab\n\r\t \\\u202e\x1b"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_a_text_of_several_lines_has_real_line_breaks() -> None:
    assert value_rows({"path": "a", "text": "one\ntwo\n", "n": 1}, None) == [
        ("|", "{"),
        ("|", '  "path": "a",'),
        ("|", '  "text": (2 lines, 8 characters),'),
        ('"', "one"),
        ('"', "two"),
        ("|", '  "n": 1'),
        ("|", "}"),
    ]


def test_a_text_without_a_last_line_break_says_so() -> None:
    assert value_rows("a\nb", None)[0] == ("|", "(2 lines, 3 characters, no line break at the end)")


def test_what_cannot_be_seen_is_an_escape_and_the_margin_says_so() -> None:
    rows = value_rows("a\tb\n\\u202e\n\u202e\nend \n\x1b[2Jc\\d\n", None)
    assert rows[1:] == [
        ("\\", "a\\tb"),
        ('"', "\\u202e"),
        ("\\", "\\u202e"),
        ("\\", "end\\x20"),
        ("\\", "\\x1b[2Jc\\\\d"),
    ]


def test_a_line_of_text_cannot_look_like_one_of_json() -> None:
    rows = value_rows({"text": '",\n| "path": "/etc/passwd"\n', "path": "a"}, None)
    assert [text for mark, text in rows if mark == "|" and "path" in text] == ['  "path": "a"']


@pytest.mark.slow
@settings(deadline=None)
@given(JSON, st.integers(24, 40))
def test_no_row_is_wider_than_it_may_be_and_all_can_be_seen(value: Any, width: int) -> None:
    rows = value_rows(value, width)
    assert all(cells(f"{mark} {text}") <= width for mark, text in rows)
    assert all(f"{mark} {text}".isprintable() for mark, text in rows)


@settings(deadline=None)
@given(JSON)
def test_rows_of_several_columns_hold_the_same_as_whole_lines(value: Any) -> None:
    joined: list[ScreenRow] = []
    for row in value_rows(value, 12):
        if row.mark == "=":
            assert row.text == f"{len(joined[-1].text):,} characters"
        elif row.mark == ">":
            joined[-1] = ScreenRow(joined[-1].mark, joined[-1].text + row.text)
        else:
            joined.append(row)
    assert joined == value_rows(value, None)


@settings(deadline=None)
@given(st.text(min_size=1).map(lambda text: text + "\n"))
def test_a_text_can_be_read_back_from_its_rows(text: str) -> None:
    lines = [read_back(row) for row in value_rows(text, None)[1:]]
    assert "".join(f"{line}\n" for line in lines) == text


def read_back(row: ScreenRow) -> str:
    if row.mark == '"':
        return row.text
    return row.text.encode("latin-1", "backslashreplace").decode("unicode_escape")


def test_a_diff_keeps_its_signs_in_the_margin() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-a\tb\n+++ b/y\n\\ No newline at end of file\n"
    assert diff_rows(diff, None) == [
        ("@ ", "-1,2 +1,2"),
        ("  ", "same"),
        ("-\\", "a\\tb"),
        ("+ ", "++ b/y"),
        ("\\ ", " No newline at end of file"),
    ]
    assert [row.mark for row in diff_rows("---\n+++\n+" + "x" * 30, 14)] == ["+ ", "> ", "> ", "= "]


@pytest.mark.parametrize("value", [None, 1.5, True, "plain", {}, [], [{}], {"a": []}])
def test_a_value_without_such_a_text_is_plain_json(value: Any) -> None:
    rows = value_rows(value, None)
    assert {mark for mark, _ in rows} == {"|"}
    assert msgspec.json.decode("\n".join(text for _, text in rows)) == value
