"""A tool: what it is and takes, and a call of it through the gate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

import msgspec

from remit.api.readiness import require_deps
from remit.api.route import MAX_BODY
from remit.canonical import sha256
from remit.codes import Code
from remit.errors import UsageError
from remit.ids import new_id
from remit.pages.actions import json_object
from remit.pages.fields import Field, args_of, fields_of
from remit.pages.page import Page, PageFile, PageRequest, PageView, ShownValue, shown, written
from remit.pages.tools import PATIENCE_S, seen_tool, server_of, standing_of
from remit.policy.explain import Explanation
from remit.record.outcome import OutcomeView
from remit.record.views import ToolView
from remit.service.mcp import ServerRow

_KEY: Final = 64
_RESULT: Final = 65_536
"""Characters of a result that the page shows."""
_AGAIN: Final = MAX_BODY - 65_536
"""Characters of arguments that still fit into a form that is sent again."""


class TryForm(msgspec.Struct, frozen=True, kw_only=True):
    """A call, field by field."""

    do: Literal["look", "call"]
    """`look`: only say what policy would do."""
    key: str
    """The same call sent twice is made once."""
    before: str = ""
    """The arguments that the form was filled with, as JSON: fields that were not touched keep them to the character."""
    name: tuple[str, ...] = ()
    value: tuple[str, ...] = ()


class ToolPage(PageView, frozen=True, kw_only=True):
    """One tool, whole."""

    template: ClassVar[str] = "tool.html"
    tool: ToolView
    server: ServerRow | None
    """The MCP server that offers it; None for another provider."""
    word: str
    tone: str
    takes: tuple[ArgumentRow, ...]
    gives: tuple[ArgumentRow, ...]
    input: ShownValue
    output: ShownValue | None
    fields: tuple[Field, ...]
    key: str
    before: str
    wrong: str = ""
    """Why the form could not be understood."""
    explanation: Explanation | None = None
    outcome: OutcomeView | None = None
    value: ShownValue | None = None
    session: str = ""
    """Where the call is recorded."""


async def tool(request: PageRequest) -> ToolPage:
    """The tool's page. Raises ResolveError or Problem."""
    return await _page(request, await seen_tool(request, request.path["tool"]), {})


async def moved(request: PageRequest) -> object:
    """Return what stays equal while the tool does; its form would get another key each time."""
    tool_seen = await seen_tool(request, request.path["tool"])
    return tool_seen, await request.service.servers.rows(PATIENCE_S) if server_of(tool_seen.provider_id) else None


async def try_it(request: PageRequest) -> ToolPage:
    """Say what policy would do with the call, or make it."""
    tool_seen, form = await seen_tool(request, request.path["tool"]), request.form
    before: dict[str, Any] = {}
    try:
        before = json_object(form.before, "The form")
        args = args_of(form.name, form.value, before, tool_seen.input_schema)
        if not isinstance(args, dict):
            raise UsageError("The arguments must be a JSON object.", code=Code.INVALID_INPUT)
        if form.do == "look" and len(json.dumps(args)) > _AGAIN:
            raise UsageError("The form is too large to be sent again: make the call without asking before.")
    except UsageError as error:
        return await _page(request, tool_seen, before, wrong=error.message, status=400, key=form.key[:_KEY], typed=form)
    if form.do == "look":
        explanation = await request.service.policy.explain(
            tool_seen.name, args, principal=request.principal, kind="http"
        )
        return await _page(request, tool_seen, args, explanation=explanation)
    await require_deps(request.service.health)
    session = await request.session()
    key = f"page {form.key[:_KEY]} {sha256(msgspec.json.encode(args, order='sorted'))}"
    outcome = await request.service.sessions.call(session, tool_seen.name, args, key=key, only=request.access.tools)
    again = form.key[:_KEY] if outcome.status == "pending" else ""
    value = shown(outcome.value, _RESULT) if outcome.ok else None
    return await _page(request, tool_seen, args, outcome=outcome, value=value, session=session, key=again)


async def _page(
    request: PageRequest,
    view: ToolView,
    args: dict[str, Any],
    *,
    key: str = "",
    typed: TryForm | None = None,
    **more: Any,
) -> ToolPage:
    word, tone = standing_of(view)
    server = server_of(view.provider_id)
    servers = await request.service.servers.rows(PATIENCE_S) if server else []
    fields = fields_of(args, view.input_schema)
    return ToolPage(
        title=view.name,
        tool=view,
        server=next((row for row in servers if row.name == server), None),
        word=word,
        tone=tone,
        takes=arguments(view.input_schema),
        gives=arguments(view.output_schema),
        input=shown(written(view.input_schema)),
        output=shown(written(view.output_schema)) if view.output_schema is not None else None,
        fields=_as_typed(fields, typed) if typed is not None else fields,
        key=key or new_id("try"),
        before=json.dumps(args) if args else "",
        **more,
    )


def _as_typed(fields: tuple[Field, ...], typed: TryForm) -> tuple[Field, ...]:
    """The fields with what the reader wrote into them, so that it can be fixed."""
    texts = dict(zip(typed.name, typed.value, strict=False))
    return tuple(msgspec.structs.replace(field, text=texts.get(field.name, field.text)) for field in fields)


async def schema(request: PageRequest) -> PageFile:
    """Both schemas, to keep."""
    tool_seen = await seen_tool(request, request.path["tool"])
    both = {"name": tool_seen.name, "input_schema": tool_seen.input_schema, "output_schema": tool_seen.output_schema}
    return PageFile(f"{tool_seen.name}.json", written(both).encode("utf-8", "replace"))


PAGES: Final = (
    Page(path="/tools/{tool}", scope="read", handler=tool, live="tools", mark=moved),
    Page(path="/tools/{tool}/schema", scope="read", handler=schema),
    Page(path="/tools/{tool}/try", scope="read", handler=tool),
    Page(path="/tools/{tool}/try", scope="call", handler=try_it, form=TryForm),
)

_DEEP: Final = 3
"""Objects inside objects that are shown; the schema itself has the rest."""
_MOST: Final = 100
_CUT: Final = 300
"""Characters of a bound or a default."""
_BOUNDS: Final = {
    "enum": "one of {}",
    "const": "exactly {}",
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
    "format": "{}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


class ArgumentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    name: str
    """With the objects that it is in: `when.after`."""
    type: str
    required: bool
    default: str
    """As JSON; empty if there is none."""
    bounds: tuple[str, ...]
    about: str


def arguments(schema: Mapping[str, Any] | None) -> tuple[ArgumentRow, ...]:
    """The rows of an object's schema, at most 100; none for a schema of another form."""
    rows: list[ArgumentRow] = []
    for row in _rows(schema or {}, schema or {}, "", 0):
        rows.append(row)
        if len(rows) == _MOST:
            break
    return tuple(rows)


def _rows(schema: Mapping[str, Any], root: Mapping[str, Any], within: str, depth: int) -> Iterator[ArgumentRow]:
    properties, needed = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return
    for name, property_ in properties.items():
        shape = _followed(property_, root)
        about = shape.get("description")
        yield ArgumentRow(
            name=f"{within}{name}",
            type=_type(shape, root),
            required=isinstance(needed, list) and name in needed,
            default=_short(shape["default"]) if "default" in shape else "",
            bounds=tuple(words.format(_short(shape[key])) for key, words in _BOUNDS.items() if key in shape),
            about=about if isinstance(about, str) else "",
        )
        inner = _followed(shape.get("items"), root) if shape.get("type") == "array" else shape
        if depth + 1 < _DEEP:
            mark = "[]." if inner is not shape else "."
            yield from _rows(inner, root, f"{within}{name}{mark}", depth + 1)


def _type(shape: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> str:
    for key in ("anyOf", "oneOf"):
        branches = shape.get(key)
        if isinstance(branches, list) and depth < _DEEP:
            words = dict.fromkeys(_type(_followed(each, root), root, depth + 1) for each in branches[:8])
            return " or ".join(words)
    sort = shape.get("type")
    if sort == "array" and depth < _DEEP:
        items = _type(_followed(shape.get("items"), root), root, depth + 1)
        return f"list of {items}" if items != "anything" else "list"
    if isinstance(sort, list):
        return " or ".join(str(each) for each in sort[:8])
    return str(sort)[:40] if sort else "anything"


def _followed(shape: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a reference within the same document means."""
    for _ in range(_DEEP):
        if not isinstance(shape, dict) or not isinstance(ref := shape.get("$ref"), str) or not ref.startswith("#/"):
            break
        node: Any = root
        for part in ref[2:].split("/"):
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
        shape = (
            {**node, **{key: each for key, each in shape.items() if key != "$ref"}} if isinstance(node, dict) else {}
        )
    return shape if isinstance(shape, dict) else {}


def _short(value: Any) -> str:
    text = value if isinstance(value, str) and value else " ".join(written(value).split())
    return text if len(text) <= _CUT else f"{text[:_CUT]}…"
