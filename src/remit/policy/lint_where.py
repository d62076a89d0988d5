"""Findings of lint in `where`: names that no argument or result has, and comparisons that never come to anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from remit.policy.constraint import declares
from remit.policy.expression import COMPARISONS, Apply, Items, Literal, Node, Path, below_of, paths_of
from remit.policy.table import closest
from remit.tools.meta import JsonSchema, ToolMeta

Problem = tuple[str, str, str]
"""The kind of finding, its message and its remedy."""

_KINDS: Final = {"string": "text", "integer": "number", "number": "number", "boolean": "boolean", "array": "list"}
_OF_VALUES: Final[dict[type, str]] = {str: "text", int: "number", float: "number", bool: "boolean"}
_TEXTS: Final = frozenset({"kind", "principal", "recipe", "tool"})
_ORDERED: Final = frozenset({"<", "<=", ">", ">="})


def problems(where: Node, about: Sequence[ToolMeta], known: Mapping[str, ToolMeta]) -> Iterator[Problem]:
    """Give what is wrong with a condition of a rule about these tools."""
    for path in dict.fromkeys(paths_of(where)):
        if path.tool:
            yield from _result(path, known)
        elif path.root == "args" and path.parts:
            yield from _argument(path, about)
    yield from _comparisons(where, about, known)


def _argument(path: Path, about: Sequence[ToolMeta]) -> Iterator[Problem]:
    name = str(path.parts[0])
    if not any(declares(tool.input_schema, name) for tool in about):
        names = {one for tool in about for one in (tool.input_schema or {}).get("properties", {})}
        yield "unknown-argument", f"names the argument {name!r}, which none of its tools has", closest(name, names)


def _result(path: Path, known: Mapping[str, ToolMeta]) -> Iterator[Problem]:
    tool = known.get(path.tool)
    if tool is None:
        yield "unknown-result", f"uses results of {path.tool}, but no tool has that name", closest(path.tool, known)
    elif tool.output_schema is not None and path.parts:
        name, names = path.parts[0], tool.output_schema.get("properties")
        closed = bool(names) and not tool.output_schema.get("additionalProperties")
        if isinstance(name, str) and closed and not declares(tool.output_schema, name):
            yield "unknown-result", f"asks for {name!r}, which {path.tool} does not return", closest(name, names or {})


def _comparisons(node: Node, about: Sequence[ToolMeta], known: Mapping[str, ToolMeta]) -> Iterator[Problem]:
    if isinstance(node, Apply) and node.name in COMPARISONS:
        kinds = [_kind(one, about, known) for one in node.operands]
        if node.name in {"in", "not in"}:
            wrong = kinds[1] not in {"", "list"}
        else:
            wrong = "" not in kinds and kinds[0] != kinds[1]
            wrong = wrong or (node.name in _ORDERED and bool({"boolean", "list"} & set(kinds)))
        if wrong:
            yield "never-told", f"can never tell whether {node}", "Compare values of one type."
    for below in below_of(node):
        yield from _comparisons(below, about, known)


def _kind(node: Node, about: Sequence[ToolMeta], known: Mapping[str, ToolMeta]) -> str:
    """Return what sort of value a node gives; empty: it is not known, or null."""
    if isinstance(node, Literal):
        return _OF_VALUES.get(type(node.value), "")
    if isinstance(node, Items):
        return "list"
    if isinstance(node, Apply):
        return "number" if node.name in {"+", "-", "*", "len", "sum", "age"} else "text" if node.name == "lower" else ""
    if node.tool:
        tool = known.get(node.tool)
        return _of_schema(tool.output_schema if tool is not None else None, node.parts)
    if node.root in _TEXTS:
        return "text"
    kinds = {_of_schema(tool.input_schema, node.parts) for tool in about} if node.root == "args" else {""}
    return kinds.pop() if len(kinds) == 1 else ""


def _of_schema(schema: JsonSchema | None, parts: tuple[str | int, ...]) -> str:
    found: Any = schema
    for part in parts:
        properties = found.get("properties") if isinstance(found, dict) else None
        found = properties.get(part) if isinstance(properties, dict) else None
    said = found.get("type") if isinstance(found, dict) else None
    return _KINDS.get(said, "") if isinstance(said, str) else ""
