from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remit.errors import UsageError
from remit.pages.fields import args_of, fields_of
from remit.pages.page import visible

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "object",
    "required": ["item"],
    "properties": {
        "item": {"type": "string", "description": "What."},
        "count": {"type": "integer"},
        "fast": {"type": "boolean"},
        "note": {"type": "string"},
        "tags": {"type": "array"},
    },
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


def filled(args: dict[str, Any], **changes: str) -> Any:
    fields = fields_of(args, SCHEMA)
    texts = [changes.get(field.name, field.text) for field in fields]
    return args_of([field.name for field in fields], texts, args, SCHEMA)


@example({"a": "x\r\ny\rz", "\r\n": "\u202e"})
@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_a_form_sent_as_it_came_changes_nothing(args: dict[str, Any]) -> None:
    fields = fields_of(args, SCHEMA)
    names = [field.name for field in fields]
    assert args_of(names, [field.text for field in fields], args, SCHEMA) == args
    sent = [visible(field.text).replace("\n", "\r\n") for field in fields]
    assert args_of([visible(name) for name in names], sent, args, SCHEMA) == args


def test_types_are_kept() -> None:
    args = {"item": "7", "count": 1, "fast": True, "tags": ["a"]}
    edited = filled(args, item="8", count="18446744073709551617", fast="false", tags='["b"]')
    assert edited == {"item": "8", "count": 18446744073709551617, "fast": False, "tags": ["b"]}


def test_what_was_not_given_stays_out_and_what_is_emptied_goes() -> None:
    assert filled({"item": "milk", "count": 1}, count="") == {"item": "milk"}
    assert filled({"item": "milk"}, note="now") == {"item": "milk", "note": "now"}
    assert filled({"item": "milk"}, item="") == {"item": ""}


def test_line_ends_are_those_that_were_typed() -> None:
    assert filled({"item": "a\nb"}, item="a\r\nc") == {"item": "a\nc"}


@pytest.mark.parametrize(("names", "texts"), [(["count"], ["one"]), (["odd"], ["1"]), (["item", "count"], ["x"])])
def test_a_form_that_does_not_fit_is_refused(names: list[str], texts: list[str]) -> None:
    with pytest.raises(UsageError):
        args_of(names, texts, {"item": "milk"}, SCHEMA)


def test_many_arguments_are_edited_as_json() -> None:
    args = {f"a{number}": number for number in range(50)}
    (field,) = fields_of(args, None)
    assert args_of([""], [field.text.replace(": 49", ": 50")], args, None) == {**args, "a49": 50}


def test_bytes_are_a_file_that_shows_nothing_and_stays_unless_another_is_chosen() -> None:
    schema = {"properties": {"scan": {"type": "string", "contentEncoding": "base64"}}}
    (field,) = fields_of({"scan": "aGk="}, schema)
    assert (field.kind, field.text) == ("file", "")
    assert args_of(["scan"], [""], {"scan": "aGk="}, schema) == {"scan": "aGk="}
    assert args_of(["scan"], ["eW8="], {"scan": "aGk="}, schema) == {"scan": "eW8="}
    assert args_of(["scan"], [""], {}, schema) == {}


def test_a_text_that_the_schema_lists_is_chosen_and_others_are_typed() -> None:
    schema = {"properties": {"unit": {"type": "string", "enum": ["kg", "lb"]}}}
    (field,) = fields_of({}, schema)
    assert (field.kind, field.choices) == ("word", ("kg", "lb"))
    assert args_of(["unit"], ["lb"], {}, schema) == {"unit": "lb"}
    assert args_of(["unit"], [""], {}, schema) == {}
    (other,) = fields_of({"unit": "stone"}, schema)
    assert other.kind == "text"
    (hidden,) = fields_of({}, {"properties": {"unit": {"type": "string", "enum": ["kg", "k\u202eg"]}}})
    assert hidden.kind == "text"
