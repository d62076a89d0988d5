"""A tool: what it is and takes, and a call of it through the gate."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final, Literal

import msgspec

from remit.api.readiness import require_deps
from remit.canonical import sha256
from remit.codes import Code
from remit.errors import UsageError
from remit.ids import new_id
from remit.pages.catalog import PATIENCE_S, seen_tool
from remit.pages.fields import Field, args_of, fields_of
from remit.pages.given import json_object
from remit.pages.page import File, Page, PageRequest, View
from remit.pages.schema import Argument, arguments
from remit.pages.text import written
from remit.pages.tools import server_of, standing_of
from remit.pages.value import Shown, shown
from remit.policy.explain import Explanation
from remit.record.outcome import OutcomeView
from remit.record.views import ToolView
from remit.service.mcp import ServerRow

_KEY: Final = 64
_RESULT: Final = 65_536
"""Characters of a result that the page shows."""


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """A call, field by field."""

    do: Literal["look", "call"]
    """`look`: only say what policy would do."""
    key: str
    """The same call sent twice is made once."""
    before: str = ""
    """The arguments that the form was filled with, as JSON: fields that were not touched keep them to the character."""
    name: tuple[str, ...] = ()
    value: tuple[str, ...] = ()


class Tool(View, frozen=True, kw_only=True):
    """One tool, whole."""

    template: ClassVar[str] = "tool.html"
    tool: ToolView
    server: ServerRow | None
    """The MCP server that offers it; None for another provider."""
    word: str
    tone: str
    takes: tuple[Argument, ...]
    gives: tuple[Argument, ...]
    input: Shown
    output: Shown | None
    fields: tuple[Field, ...]
    key: str
    before: str
    wrong: str = ""
    """Why the form could not be understood."""
    explanation: Explanation | None = None
    outcome: OutcomeView | None = None
    value: Shown | None = None
    session: str = ""
    """Where the call is recorded."""


async def tool(asked: PageRequest) -> Tool:
    """The tool's page. Raises ResolveError or Problem."""
    return await _page(asked, await seen_tool(asked, asked.path["tool"]), {})


async def moved(asked: PageRequest) -> object:
    """What stays equal while the tool does; its form would get another key each time."""
    found = await seen_tool(asked, asked.path["tool"])
    return found, await asked.service.servers.rows(PATIENCE_S) if server_of(found.provider_id) else None


async def try_it(asked: PageRequest) -> Tool:
    """Say what policy would do with the call, or make it."""
    found, form = await seen_tool(asked, asked.path["tool"]), asked.form
    before: dict[str, Any] = {}
    try:
        before = json_object(form.before, "The form")
        args = args_of(form.name, form.value, before, found.input_schema)
        if not isinstance(args, dict):
            raise UsageError("The arguments must be a JSON object.", code=Code.INVALID_INPUT)
    except UsageError as error:
        return await _page(asked, found, before, wrong=error.message, status=400, key=form.key[:_KEY], typed=form)
    if form.do == "look":
        explanation = await asked.service.policy.explain(found.name, args, principal=asked.principal, kind="http")
        return await _page(asked, found, args, explanation=explanation)
    await require_deps(asked.service.health)
    session = await asked.session()
    key = f"page {form.key[:_KEY]} {sha256(msgspec.json.encode(args, order='sorted'))}"
    outcome = await asked.service.sessions.call(session, found.name, args, key=key, only=asked.access.tools)
    again = form.key[:_KEY] if outcome.status == "pending" else ""
    value = shown(outcome.value, _RESULT) if outcome.ok else None
    return await _page(asked, found, args, outcome=outcome, value=value, session=session, key=again)


async def _page(
    asked: PageRequest, found: ToolView, args: dict[str, Any], *, key: str = "", typed: Try | None = None, **more: Any
) -> Tool:
    word, tone = standing_of(found)
    server = server_of(found.provider_id)
    servers = await asked.service.servers.rows(PATIENCE_S) if server else []
    fields = fields_of(args, found.input_schema)
    return Tool(
        title=found.name,
        tool=found,
        server=next((row for row in servers if row.name == server), None),
        word=word,
        tone=tone,
        takes=arguments(found.input_schema),
        gives=arguments(found.output_schema),
        input=shown(written(found.input_schema)),
        output=shown(written(found.output_schema)) if found.output_schema is not None else None,
        fields=_as_typed(fields, typed) if typed is not None else fields,
        key=key or new_id("try"),
        before=json.dumps(args) if args else "",
        **more,
    )


def _as_typed(fields: tuple[Field, ...], typed: Try) -> tuple[Field, ...]:
    """The fields with what the reader wrote into them, so that it can be fixed."""
    texts = dict(zip(typed.name, typed.value, strict=False))
    return tuple(msgspec.structs.replace(field, text=texts.get(field.name, field.text)) for field in fields)


async def schema(asked: PageRequest) -> File:
    """Both schemas, to keep."""
    found = await seen_tool(asked, asked.path["tool"])
    both = {"name": found.name, "input_schema": found.input_schema, "output_schema": found.output_schema}
    return File(f"{found.name}.json", written(both).encode("utf-8", "replace"))


PAGES: Final = (
    Page(path="/tools/{tool}", scope="read", handler=tool, live="tools", mark=moved),
    Page(path="/tools/{tool}/schema", scope="read", handler=schema),
    Page(path="/tools/{tool}/try", scope="read", handler=tool),
    Page(path="/tools/{tool}/try", scope="call", handler=try_it, form=Try),
)
