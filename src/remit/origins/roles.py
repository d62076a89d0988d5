"""What an argument is for: it says where something goes, or it is what goes there.

An argument of *authority* chooses what a call reaches: an address, a path, an account, a command, an identifier. An
argument of *content* is free text. The schema says which (`x-remit-role`), else its `format` does, else its name; what
none of them tells is authority if it looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, get_args

from remit.tools.meta import JsonSchema, ToolMeta

Role = Literal["url", "email", "path", "iban", "command", "id", "content"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
KEYWORD: Final = "x-remit-role"
"""The keyword of a schema that names the role."""

_FORMATS: Final[dict[str, Role]] = {
    "email": "email",
    "idn-email": "email",
    "uri": "url",
    "url": "url",
    "iri": "url",
    "uri-reference": "url",
    "iri-reference": "url",
    "hostname": "url",
    "idn-hostname": "url",
    "ipv4": "url",
    "ipv6": "url",
    "uuid": "id",
    "path": "path",
    "iban": "iban",
    "date": "content",
    "date-time": "content",
    "duration": "content",
    "time": "content",
}
_WORDS: Final[dict[Role, str]] = {
    "url": "url uri href link endpoint webhook callback host hostname domain server site proxy ip",
    "email": "email mail to cc bcc recipient sender attendee invitee",
    "path": "path file filename dir directory folder root dest destination",
    "iban": "iban account bic swift payee beneficiary",
    "command": "command cmd argv args script shell executable program code sql",
    "id": "id ids uuid guid key repo repository owner org organization organisation branch ref user username login "
    "channel phone tel address wallet project issue ticket tenant database table bucket group team",
    "content": "text body message content title subject summary description comment note prompt question answer reason "
    "query instructions task",
}
_BY_WORD: Final[dict[str, Role]] = {word: role for role, words in _WORDS.items() for word in words.split()}
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SHAPES: Final[tuple[tuple[re.Pattern[str], Role], ...]] = (
    (re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}://\S+"), "url"),
    (re.compile(r"(?:mailto:)?[^\s@<>]{1,64}@[^\s@<>]{1,255}"), "email"),
    (re.compile(r"[^@<>]{0,100}<[^\s@<>]{1,64}@[^\s@<>]{1,255}>"), "email"),
    (re.compile(r"(?=(?:[^0-9]*[0-9]){8})[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]){11,30}"), "iban"),
    (re.compile(r"(?:~?/|\.\.?/|[A-Za-z]:\\)[^\s]{1,1000}"), "path"),
)
_LONGEST_SHAPE: Final = 2_048
_BETWEEN: Final = re.compile(r"[\s,;]+")
_MOST: Final = 64
"""Subschemas looked at for one value."""
_BRANCHES: Final = ("allOf", "anyOf", "oneOf")
_CONDITIONS: Final = ("if", "then", "else")


class Argument(NamedTuple):
    """One value of authority among the arguments of a call."""

    path: str
    """Where it stands, as rules write it: `a.b` for `b` in the table `a`, the same for every item of a list."""
    role: Role
    value: str


def arguments_of(schema: JsonSchema | None, args: dict[str, Any], *, foreign: bool = False) -> list[Argument]:
    """Every value of authority, each once.

    Of a `foreign` schema, which a server words itself, the keyword may not say that an argument is mere content.
    """
    walk = _Walk(schema or {}, foreign=foreign)
    return list(dict.fromkeys(walk.table(args, walk.resolved([schema or {}]), None, "")))


def authority_of(tool: ToolMeta, args: dict[str, Any]) -> list[Argument]:
    """Every value of authority among the arguments of a tool; a server's schema is not its word alone."""
    return arguments_of(tool.input_schema, args, foreign=tool.provider_id.startswith("mcp_"))


def role_of_name(name: str) -> Role | None:
    """The role that a name suggests: its last word counts most; None if it suggests nothing."""
    for word in reversed(_WORD.findall(name)):
        plain = word.lower()
        role = _BY_WORD.get(plain) or _BY_WORD.get(plain.removesuffix("s"))
        if role is not None:
            return role
    return None


def role_of_shape(value: str) -> Role | None:
    """The role of a text that as a whole is an address, an account number or an absolute path."""
    if len(value) > _LONGEST_SHAPE:
        return None
    return next((role for pattern, role in _SHAPES if pattern.fullmatch(value)), None)


class _Walk:
    """Goes through arguments and their schema together."""

    def __init__(self, root: JsonSchema, *, foreign: bool) -> None:
        self._root = root
        self._foreign = foreign

    def table(
        self, value: dict[str, Any], schemas: list[JsonSchema], above: Role | None, path: str
    ) -> Iterator[Argument]:
        for name, item in value.items():
            place = f"{path}.{name}" if path else name
            said = role_of_shape(name)
            if said is not None:  # a table of addresses has them as names
                yield Argument(place, said, name)
            below = self.resolved([one for schema in schemas for one in _property(schema, name)])
            yield from self._value(item, below, self._role(below, role_of_name(name)) or above, place)

    def _value(self, value: Any, schemas: list[JsonSchema], role: Role | None, path: str) -> Iterator[Argument]:
        if isinstance(value, dict):
            yield from self.table(value, schemas, role, path)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                below = self.resolved([one for schema in schemas for one in _item(schema, index)])
                yield from self._value(item, below, self._role(below, None) or role, path)
        elif isinstance(value, str):
            if value and not self._listed(value, schemas):
                yield from self._text(value, role, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            said = self._said(schemas)
            if (said or role) == "id" or (said not in {None, "content"}):
                yield Argument(path, said or "id", str(value))

    def _text(self, value: str, role: Role | None, path: str) -> Iterator[Argument]:
        if role is None or (role == "content" and self._foreign):  # a server chooses its names
            found = role_of_shape(value)
            if found is not None:
                yield Argument(path, found, value)
            elif len(value) <= _LONGEST_SHAPE:
                parts = [(role_of_shape(part), part) for part in _BETWEEN.split(value.strip(" ,;\n"))]
                if all(shape is not None for shape, _ in parts):
                    yield from (Argument(path, shape, part) for shape, part in parts if shape is not None)
        elif role != "content":
            yield Argument(path, role, value)

    def _role(self, schemas: list[JsonSchema], named: Role | None) -> Role | None:
        formats = [_FORMATS.get(str(schema.get("format"))) for schema in schemas]
        return self._said(schemas) or next(filter(None, formats), None) or named

    def _said(self, schemas: list[JsonSchema]) -> Role | None:
        """What the keyword says; of several the one that is authority."""
        said = [schema.get(KEYWORD) for schema in schemas]
        known: list[Role] = [role for role in ROLES if role in said]
        if self._foreign and "content" in known:
            known.remove("content")
        return known[0] if known else None  # content is the last of them

    def _listed(self, value: str, schemas: list[JsonSchema]) -> bool:
        """Whether the schema itself lists the value: then the tool's owner has chosen it."""
        if self._foreign or self._said(schemas) is not None:
            return False
        return any(value in (schema.get("enum") or ()) or schema.get("const") == value for schema in schemas)

    def resolved(self, schemas: list[Any]) -> list[JsonSchema]:
        """The schemas, and all that they refer to or are made of."""
        found: list[JsonSchema] = []
        rest = [schema for schema in schemas if isinstance(schema, dict)]
        while rest and len(found) < _MOST:
            schema = rest.pop(0)
            if any(schema is one for one in found):
                continue
            found.append(schema)
            parts = [one for key in _BRANCHES for one in schema.get(key) or ()]
            parts += [schema[key] for key in _CONDITIONS if key in schema]
            parts += [self._target(schema["$ref"])] if isinstance(schema.get("$ref"), str) else []
            rest += [one for one in parts if isinstance(one, dict)]
        return found

    def _target(self, reference: str) -> Any:
        """What a reference within the schema means; None if it leads elsewhere."""
        target: Any = self._root
        if not reference.startswith("#"):
            return None
        for part in reference[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        return target


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
