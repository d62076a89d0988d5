"""The arguments of a call that say where it goes: found in tables, lists and texts that hold tables themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from remit.origins.roles import (
    FORMATS,
    KEYWORD,
    ROLES,
    Role,
    addresses_in,
    is_count,
    is_header,
    role_of_name,
    role_of_shape,
)
from remit.origins.text_index import wide
from remit.regex import regex
from remit.tools.meta import JsonSchema, ToolMeta

_BETWEEN: Final = regex(r"[\s,;]+")
_FORM: Final = regex(r"[\w.\[\]-]{1,100}=[^&\s]*(?:&[\w.\[\]-]{1,100}=[^&\s]*)+")
_LONGEST_PARTED: Final = 2_048
"""Characters of a text that is looked at part by part."""
_LONGEST_TEXT: Final = 100_000
"""Characters of a text that is searched for what it holds."""
_DEPTH: Final = 3
"""Texts within texts that are opened."""
_MOST: Final = 64
"""Subschemas looked at for one value."""
_BRANCHES: Final = ("allOf", "anyOf", "oneOf")
_CONDITIONS: Final = ("if", "then", "else")


class AuthorityValue(msgspec.Struct, frozen=True):
    """One value of authority among the arguments of a call."""

    path: str
    """Where it stands, as rules write it: `a.b` for `b` in the table `a`, the same for every item of a list."""
    role: Role
    value: str


def arguments_of(
    schema: JsonSchema | None, args: dict[str, Any], *, foreign: bool = False, every: bool = False
) -> list[AuthorityValue]:
    """Every value of authority, each once; with `every`, all other values too, as content.

    Of a `foreign` schema, which a server words itself, the keyword may not say that an argument is mere content.
    """
    walk = _Walk(schema or {}, foreign=foreign, every=every)
    return list(dict.fromkeys(walk.table(args, walk.resolved([schema or {}]), None, "")))


def authority_of(tool: ToolMeta, args: dict[str, Any], *, every: bool = False) -> list[AuthorityValue]:
    """Every value of authority among the arguments of a tool; a server's schema is not its word alone."""
    return arguments_of(tool.input_schema, args, foreign=tool.provider_id.startswith("mcp_"), every=every)


def addresses_of(tool: ToolMeta, args: dict[str, Any]) -> list[AuthorityValue]:
    """The arguments that a tool's schema itself calls URLs: to read one tells its owner what stands in it."""
    properties = (tool.input_schema or {}).get("properties")
    tables = properties if isinstance(properties, dict) else {}
    named = [name for name, entry in tables.items() if isinstance(entry, dict) and entry.get(KEYWORD) == "url"]
    values = {name: args[name] for name in named if name in args}
    return authority_of(tool, values) if values else []


def carried_by(tool: ToolMeta, args: dict[str, Any]) -> Iterator[AuthorityValue]:
    """Return everything that can carry something into a function: each value, of whatever kind, and odd structures.

    A list can carry more than its values by how long or how deep it is: one with a value twice, or within another one,
    counts as a whole. Only what the tool's own schema gives as the default carries nothing.
    """
    schema = tool.input_schema or {}
    walk = _Carry(schema, foreign=tool.provider_id.startswith("mcp_"), every=True)
    return walk.table(args, walk.resolved([schema]), None, "")


class _Walk:
    """Goes through arguments and their schema together."""

    def __init__(self, root: JsonSchema, *, foreign: bool, every: bool) -> None:
        self._root = root
        self._foreign = foreign
        self._every = every
        self._depth = 0

    def table(
        self, value: dict[str, Any], schemas: list[JsonSchema], above: Role | None, path: str
    ) -> Iterator[AuthorityValue]:
        for name, item in value.items():
            place = f"{path}.{name}" if path else name
            shape = role_of_shape(name)
            if shape is not None:  # a table of addresses has them as names
                yield AuthorityValue(place, shape, name)
            elif self._every and path and not any(name in (schema.get("properties") or ()) for schema in schemas):
                yield from self._rest(name, place)
            below = self.resolved([inner for schema in schemas for inner in _property(schema, name)])
            named: Role | None = "content" if isinstance(item, int) and is_count(name) else role_of_name(name)
            role = self._role(below, named) or (above if shape is None else None)
            yield from self._value(item, below, role, place)

    def _value(self, value: Any, schemas: list[JsonSchema], role: Role | None, path: str) -> Iterator[AuthorityValue]:
        if isinstance(value, dict):
            yield from self.table(value, schemas, role, path)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                below = self.resolved([inner for schema in schemas for inner in _item(schema, index)])
                yield from self._value(item, below, self._role(below, None) or role, path)
        elif isinstance(value, str):
            if value and not self._listed(value, schemas):
                yield from self._text(value, role, path, quiet=self._said(schemas) == "content")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if role not in {None, "content"}:
                yield AuthorityValue(path, role, str(value))
            else:
                yield from self._rest(str(value), path)

    def _text(self, value: str, role: Role | None, path: str, *, quiet: bool) -> Iterator[AuthorityValue]:
        """A text; one that the schema says is content is not looked at, however it looks."""
        if role not in {None, "content"}:
            yield AuthorityValue(path, role, value)
            return
        if not quiet:
            yield from self._looks(value, role, path)
        yield from self._rest(value, path)

    def _looks(self, value: str, role: Role | None, path: str) -> Iterator[AuthorityValue]:
        """Give what a text that no schema tells of is, or holds."""
        shape = role_of_shape(value)
        if shape is not None:
            yield AuthorityValue(path, shape, value)
            return
        if self._depth < _DEPTH and (table := _opened(value, forms=role is None)) is not None:
            self._depth += 1
            yield from self._value(table, [], None, path)
            self._depth -= 1
            return
        if is_header(path.rpartition(".")[2]) and len(value.strip().splitlines()) > 1:  # more lines are more headers
            yield AuthorityValue(path, "content", value)
        if len(value) <= _LONGEST_PARTED:
            parts = [(role_of_shape(part), part) for part in _BETWEEN.split(value.strip(" ,;\n"))]
            if all(shape is not None for shape, _ in parts):
                yield from (AuthorityValue(path, shape, part) for shape, part in parts if shape is not None)
                return
        if role is None and len(value) <= _LONGEST_TEXT:
            yield from (AuthorityValue(path, shape, part) for shape, part in addresses_in(value))

    def _rest(self, value: str, path: str) -> Iterator[AuthorityValue]:
        if self._every and any(map(str.isalnum, value)):
            yield AuthorityValue(path, "content", value)

    def _role(self, schemas: list[JsonSchema], named: Role | None) -> Role | None:
        formats = [FORMATS.get(str(schema.get("format"))) for schema in schemas]
        return self._said(schemas) or next(filter(None, formats), None) or named

    def _said(self, schemas: list[JsonSchema]) -> Role | None:
        """Return what the keyword says; of several the one that is authority."""
        roles = [schema.get(KEYWORD) for schema in schemas]
        known: list[Role] = [role for role in ROLES if role in roles]
        if self._foreign and "content" in known:
            known.remove("content")
        return known[0] if known else None  # content is the last of them

    def _listed(self, value: str, schemas: list[JsonSchema]) -> bool:
        """Return whether the schema itself lists the value: then the tool's owner has chosen it."""
        if self._foreign or self._said(schemas) is not None:
            return False
        return any(value in (schema.get("enum") or ()) or schema.get("const") == value for schema in schemas)

    def resolved(self, schemas: list[Any]) -> list[JsonSchema]:
        """The schemas, and all that they refer to or are made of."""
        schemas_seen: list[JsonSchema] = []
        rest = [schema for schema in schemas if isinstance(schema, dict)]
        while rest and len(schemas_seen) < _MOST:
            schema = rest.pop(0)
            if any(schema is inner for inner in schemas_seen):
                continue
            schemas_seen.append(schema)
            parts = [inner for key in _BRANCHES for inner in schema.get(key) or ()]
            parts += [schema[key] for key in _CONDITIONS if key in schema]
            parts += [self._target(schema["$ref"])] if isinstance(schema.get("$ref"), str) else []
            rest += [inner for inner in parts if isinstance(inner, dict)]
        return schemas_seen

    def _target(self, reference: str) -> Any:
        """Return what a reference within the schema means; None if it leads elsewhere."""
        target: Any = self._root
        if not reference.startswith("#"):
            return None
        for part in reference[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        return target


class _Carry(_Walk):
    """Goes through arguments for what they carry; paths and URLs keep their role, for they may be made of parts."""

    def table(
        self, value: dict[str, Any], schemas: list[JsonSchema], above: Role | None, path: str
    ) -> Iterator[AuthorityValue]:
        for name, item in value.items():
            place = f"{path}.{name}" if path else name
            if not any(name in (schema.get("properties") or ()) for schema in schemas):
                yield AuthorityValue(place, "content", name)
            below = self.resolved([inner for schema in schemas for inner in _property(schema, name)])
            if self._foreign or not any(
                _written(schema["default"]) == _written(item) for schema in below if "default" in schema
            ):
                yield from self._value(item, below, role_of_name(name) or above, place)

    def _value(self, value: Any, schemas: list[JsonSchema], role: Role | None, path: str) -> Iterator[AuthorityValue]:
        if isinstance(value, dict) and value:
            yield from self.table(value, schemas, role, path)
        elif isinstance(value, list) and value:
            if len({_written(item) for item in value}) < len(value) or any(isinstance(item, list) for item in value):
                yield AuthorityValue(path, "content", _written(value))
            for index, item in enumerate(value):
                below = self.resolved([inner for schema in schemas for inner in _item(schema, index)])
                yield from self._value(item, below, role, path)
        elif isinstance(value, str) and value:
            yield AuthorityValue(path, role if role in {"path", "url"} else "content", value)
        else:
            yield AuthorityValue(path, "content", str(value) if isinstance(value, float) else _written(value))


def _written(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _property(schema: JsonSchema, name: str) -> list[Any]:
    properties = schema.get("properties")
    if isinstance(properties, dict) and name in properties:
        return [properties[name]]
    patterns = schema.get("patternProperties")
    return [*(patterns.values() if isinstance(patterns, dict) else ()), schema.get("additionalProperties")]


def _item(schema: JsonSchema, index: int) -> list[Any]:
    first = schema.get("prefixItems")
    if isinstance(first, list) and index < len(first):
        return [first[index]]
    return [schema.get("items")]


def _opened(text: str, *, forms: bool) -> Any:
    """The table or list that a text is, as JSON or, if `forms` count, as the fields of a form; None if it is none."""
    if len(text) > _LONGEST_TEXT:
        return None
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return None
    if not forms or _FORM.fullmatch(text) is None:
        return None
    fields = (field.partition("=") for field in text.replace("+", " ").split("&"))
    return {wide(name): wide(value) for name, _, value in fields}
