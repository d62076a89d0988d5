"""The pages of events say what journal/kinds does: every kind, every field, its type, default and meaning."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from remit.journal.blobs import BlobRef
from remit.journal.kinds import KINDS, ConfirmationDecided, ErrorInfo, MessageKept, Payload, ScheduleOrigin, SkillPin
from remit.journal.kinds.calls import DecisionFacts
from remit.journal.kinds.people import Extension, Via
from remit.parts.model_gateway.kinds import BodySegment
from tests.every_kind import EVERY_KIND

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("events.md", "events-parts.md"))
PAGE = PAGE.replace("(events.md#", "(#")
PLAIN = {str: "text", int: "integer", float: "number", bool: "true or false", msgspec.Raw: "JSON", type(None): "null"}
NAMED = {
    BlobRef: "[reference](#reference)",
    ErrorInfo: "[error](#error)",
    MessageKept: "[message](#message)",
    BodySegment: "[segment](#segment)",
    ScheduleOrigin: "[schedule](#schedule)",
    SkillPin: "[skill](#skill)",
    DecisionFacts: "[decision facts](#decision-facts)",
    Extension: "[extension](#extension)",
    Via: "[via](#via)",
    ConfirmationDecided: "[answer](#confirmation_decided)",
}
UNSAID = (msgspec.UnsetType,)
Struct = type[msgspec.Struct]


def fields_of(struct: Struct) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(struct)


def type_of(hint: Any) -> str:
    """A field's type in the words of the page."""
    while typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    if hint in PLAIN or hint in NAMED:
        return PLAIN.get(hint) or NAMED[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list: {type_of(arguments[0])}"
    if origin is dict:
        return "object"
    members = [member for member in arguments if member not in UNSAID]
    choices = [value for member in members if typing.get_origin(member) is Literal for value in typing.get_args(member)]
    if choices:
        return "one of " + ", ".join(f"`{value}`" for value in choices)
    return " or ".join(type_of(member) for member in members)


def default_of(field: msgspec.structs.FieldInfo) -> str:
    """A field's default in the words of the page; empty: the field is always there."""
    if field.required:
        return ""
    if field.default is msgspec.UNSET:
        return "absent"
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return f"`{msgspec.json.encode(default).decode()}`"


def docs_of(struct: Struct) -> dict[str, str]:
    """What stands below a field in the code."""
    (tree,) = ast.parse(inspect.getsource(struct)).body
    assert isinstance(tree, ast.ClassDef)
    docs = {}
    names = {field.name: field.encode_name for field in fields_of(struct)}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            docs[names[field.target.id]] = inspect.cleandoc(typing.cast("str", ast.literal_eval(below.value)))
    return docs


def section(title: str) -> list[str]:
    found = re.search(rf"^### {re.escape(title)}$\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no section {title}"
    return found[1].splitlines()


def rows(title: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section(title) if line.startswith("| `")]


EVERY: list[tuple[str, Struct]] = [
    ("decision facts", DecisionFacts),
    ("error", ErrorInfo),
    ("extension", Extension),
    ("via", Via),
    ("message", MessageKept),
    ("reference", BlobRef),
    ("schedule", ScheduleOrigin),
    ("skill", SkillPin),
    *((f"`{kind}`", payload) for kind, payload in EVERY_KIND.items()),
]


@pytest.mark.parametrize(("title", "struct"), EVERY, ids=[title for title, _ in EVERY])
def test_every_field_is_listed_with_its_type_and_default(title: str, struct: Struct) -> None:
    expected = [[f"`{field.encode_name}`", type_of(field.type), default_of(field)] for field in fields_of(struct)]
    assert [row[:3] for row in rows(title)] == expected


@pytest.mark.parametrize(("title", "struct"), EVERY, ids=[title for title, _ in EVERY])
def test_every_field_has_a_meaning_and_the_one_in_the_code(title: str, struct: Struct) -> None:
    meanings = {row[0].strip("`"): row[3] for row in rows(title)}
    assert all(meaning.endswith(".") for meaning in meanings.values())
    assert docs_of(struct).items() <= meanings.items()


@pytest.mark.parametrize("payload", EVERY_KIND.values(), ids=EVERY_KIND)
def test_every_kind_says_what_it_means_where_it_lies_and_who_writes_it(payload: type[Payload]) -> None:
    first, second, *_ = section(f"`{payload.KIND}`")
    assert first == inspect.getdoc(payload)
    assert re.fullmatch(r"In .+; written by .+\.", second)


def test_no_other_kind_is_listed_and_they_come_by_topic() -> None:
    listed = re.findall(r"^### `(\w+)`$", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(EVERY_KIND)
    assert [kind for kind in listed if kind in KINDS] == list(KINDS)


def test_every_stream_that_is_named_is_listed() -> None:
    listed = re.findall(r"^\| `([^`]+)` \| `\w+` \|", PAGE, re.MULTILINE)
    named = re.findall(r"^In (.+); written by", PAGE, re.MULTILINE)
    streams = {stream for line in named for stream in re.findall(r"`([^`]+)`", line)}
    assert streams == set(listed)
