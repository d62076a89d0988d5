"""Two tools in the place of many, for clients whose list of tools should be short: one finds tools, one calls them.

A call through the second is a call of the tool that it names: checked, asked about and recorded as that. A search is a
look at the list, as `tools/list` is, and leaves no record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import apsw
import msgspec

from remit.codes import Code
from remit.files.index.rank import any_of
from remit.files.index.store import words_of
from remit.files.words import STOP, compounds, words
from remit.tools.remote import OUTCOME

if TYPE_CHECKING:
    from remit.service.visible import OfferedTool

SEARCH: Final = "tools__search"
CALL: Final = "tools__call"
OURS: Final = frozenset({SEARCH, CALL})
_SOURCES_LONG: Final = 600
"""Characters of the list of sources that a client is shown: each of its runs pays for them."""
_TOLD: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""Members of a definition that a model has a use for."""
_ENCODE: Final = msgspec.json.Encoder().encode


class ToolSearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a search."""

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000, description="What you want to do, in words.")]
    limit: Annotated[int, msgspec.Meta(ge=1, le=20, description="The most tools to return.")] = 5


class ToolByName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a call of a tool by its name."""

    name: Annotated[str, msgspec.Meta(min_length=1, description=f"The tool's name, as {SEARCH} gave it.")]
    arguments: Annotated[dict[str, Any], msgspec.Meta(description="The tool's arguments, by its inputSchema.")] = {}


def definitions_of(sources: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The definitions of the two tools; `sources` are whose tools can be found."""
    of = _cut(sorted(set(sources)))
    search = {
        "name": SEARCH,
        "description": (
            f"Find tools by what they do{f', among those of: {of}' if of else ''}. "
            f"Returns names, descriptions and input schemas; call what fits with {CALL}."
        ),
        "inputSchema": _schema(ToolSearch),
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
    call = {
        "name": CALL,
        "description": f"Call a tool that {SEARCH} found, by its name and with arguments by its input schema.",
        "inputSchema": _schema(ToolByName),
        "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    }
    return search, call


def source_of(tool: OfferedTool) -> str:
    """Whose tool it is, in a word: its MCP server, or the family that its name begins with."""
    family, _, rest = tool.name.partition(".")
    return rest.partition(".")[0] if family == "mcp" else family


def reply_with(tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The result of a search."""
    structured: dict[str, Any] = {"tools": [{key: each[key] for key in _TOLD if key in each} for each in tools]}
    if not tools:
        structured["hint"] = "No tool has any of these words. Say it in others, such as the action and its object."
    return {"content": [{"type": "text", "text": _ENCODE(structured).decode()}], "isError": False}


def refusal(code: Code, reason: str, remedy: str) -> dict[str, Any]:
    """The result of a call that named no tool that could be called."""
    text = f"{code.name}: {reason.rstrip('.')}. {remedy}"
    structured = {"status": "blocked", "code": code.name, "remedy": remedy}
    return {"content": [{"type": "text", "text": text}], "isError": True, "_meta": {OUTCOME: structured}}


def _schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    schema: dict[str, Any] = msgspec.json.schema(arguments)["$defs"][arguments.__name__]
    return {key: value for key, value in schema.items() if key not in {"title", "description"}}


def _cut(sources: Sequence[str]) -> str:
    text = ""
    for number, source in enumerate(sources):
        longer = f"{text}, {source}" if text else source
        if len(longer) > _SOURCES_LONG:
            return f"{text} and {len(sources) - number} more"
        text = longer
    return text


_SCHEMA: Final = """
CREATE VIRTUAL TABLE tools USING fts5 (name, text, parameters, tokenize = 'porter unicode61 remove_diacritics 2')
"""
_BEST: Final = "SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, 4.0, 2.0, 1.0), rowid LIMIT ?"
_SAME: Final = (
    "create add make new open",
    "update edit change modify",
    "delete remove",
    "get read show fetch view",
    "search find look",
    "send post",
    "email mail",
)
"""Words of which a server chose one for its tools, and a question another."""
_SYNONYMS: Final = {word: group.split() for group in _SAME for word in group.split()}


class ToolIndex:
    """The tools that one client can find: BM25 over their names, their texts and their parameters."""

    def __init__(self, definitions: Sequence[dict[str, Any]]) -> None:
        self._definitions = definitions
        self._db = apsw.Connection(":memory:")
        self._db.execute(_SCHEMA)
        with self._db:
            rows = ((i, *map(words_of, _texts(each))) for i, each in enumerate(definitions))
            self._db.executemany("INSERT INTO tools (rowid, name, text, parameters) VALUES (?, ?, ?, ?)", rows)

    def best(self, query: str, limit: int) -> list[dict[str, Any]]:
        """The tools that fit a question, the best first."""
        # The words of asking count here, in contrast to a search in documents: they are the names of tools, as `list`.
        terms = [word for word in words(query) if word not in STOP]
        same = (synonym for word in terms for synonym in _SYNONYMS.get(word, ()))
        expression = any_of(list(dict.fromkeys([*compounds(query), *terms, *same])))
        rows = self._db.execute(_BEST, (expression, limit)) if expression else ()
        return [self._definitions[number] for (number,) in rows]


def _texts(definition: dict[str, Any]) -> tuple[str, str, str]:
    """The texts of a definition that are searched: name, description, parameters."""
    text = " ".join(str(definition[key]) for key in ("title", "description") if definition.get(key))
    properties = definition["inputSchema"].get("properties")
    texts: list[str] = []
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        about = schema.get("description") if isinstance(schema, dict) else None
        texts += [name, about] if isinstance(about, str) else [name]
    return str(definition["name"]), text, " ".join(texts)
