from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import SettingsError
from remit.mcp_config import foreign
from remit.mcp_config.foreign import MAX_DEPTH, parse, read_json

COMMENTED = """{
  // a line, with "quotes"
  "url": "https://h//x", /* a
  block */ "list": [1, 2, ], // end
  "text": "a, ] // b /* c */ \\" ,}",
}
"""


def test_comments_and_trailing_commas_are_understood_and_strings_left_alone() -> None:
    assert parse(COMMENTED, "f") == {"url": "https://h//x", "list": [1, 2], "text": 'a, ] // b /* c */ " ,}'}


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda some: st.lists(some) | st.dictionaries(st.text(), some))
)
def test_plain_json_is_itself_with_comments_and_without(value: Any) -> None:
    text = json.dumps(value)
    assert parse(text, "f") == value
    assert parse(f"// head\n{text}/* tail */", "f") == value


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1,\n "b": hunter2}', "f:2:7: "),
        ('{"a": 1, // c\n  /* d\n */ "b" 2}', "f:3:9: "),
        ('{"a": 1', "f:1:8: "),
        ('{"a": /* never ends', "f:1:7: "),
        ("", "f:1:1: "),
        ("[1,,]", "f:1:3: " if sys.version_info >= (3, 13) else "f:1:5: "),
    ],
)
def test_bad_json_is_refused_with_line_and_column_and_nothing_of_it_is_quoted(text: str, place: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text, "f")
    assert caught.value.message.startswith(place)
    assert "hunter2" not in caught.value.message


def test_what_is_nested_too_deeply_is_refused() -> None:
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH, "f")
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(SettingsError, match=r"f: is nested"):
            parse("[" * depth + "]" * depth, "f")


def test_a_file_is_read_with_its_byte_order_mark_and_within_its_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(file) == {"a": 1}
    monkeypatch.setattr(foreign, "MAX_BYTES", 10)
    with pytest.raises(SettingsError, match="is larger than 10 bytes"):
        read_json(file)
    file.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="is not UTF-8"):
        read_json(file)
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read_json(tmp_path / "none.json")


def test_half_a_character_is_refused_and_a_whole_one_is_not() -> None:
    assert parse('"\\ud83d\\ude00"', "f") == "😀"
    with pytest.raises(SettingsError, match="f: contains a lone surrogate"):
        parse('{"a": ["\\ud83d"]}', "f")
