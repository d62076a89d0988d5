"""The limits of a schema: a tool's owner writes it, and everyone who calls the tool pays for it.

The largest of 639 schemas seen in the wild had 5 levels, 50 subschemas and 7.3 kB; the limits leave room and stop what
was made to hurt. References are followed, because a chain of doubled ones turns 26 lines into 2^26 checks.

Where schemas lie within a schema, and what a reference inside it points at.

Knows the keywords of JSON Schema drafts 4 to 2020-12 alike: a keyword that a draft lacks is counted all the same, which
only makes the limits stricter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from remit.canonical import canonical
from remit.errors import NotCanonicalError, SchemaError

Schema = dict[str, Any]
Pointer = tuple[str | int, ...]
"""Steps from the root of a document to a place in it (RFC 6901)."""

DEFINITIONS: Final = ("$defs", "definitions")
"""Keywords whose schemas check nothing until a reference points at them."""

# Keywords whose schemas look at the same place of the instance as the schema they stand in.
_SAME_PLACE_ONE: Final = ("not", "if", "then", "else")
_SAME_PLACE_LIST: Final = ("allOf", "anyOf", "oneOf")
_SAME_PLACE_MAP: Final = ("dependentSchemas", "dependencies")

_ONE: Final = (
    *_SAME_PLACE_ONE,
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
)
_LIST: Final = (*_SAME_PLACE_LIST, "prefixItems", "items")
_MAP: Final = (*_SAME_PLACE_MAP, "properties", "patternProperties", *DEFINITIONS)

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")


def children(schema: Schema) -> Iterator[tuple[Pointer, Any]]:
    """Every schema written directly within this one, with the steps to it; booleans are schemas too."""
    yield from _found(schema, _ONE, _LIST, _MAP)


def same_place(schema: Schema) -> Iterator[tuple[Pointer, Any]]:
    """Those children that look at the same place of the instance, so that they add to what this schema says."""
    yield from _found(schema, _SAME_PLACE_ONE, _SAME_PLACE_LIST, _SAME_PLACE_MAP)


def _found(
    schema: Schema, single: tuple[str, ...], lists: tuple[str, ...], maps: tuple[str, ...]
) -> Iterator[tuple[Pointer, Any]]:
    for keyword in single:
        if isinstance(schema.get(keyword), dict | bool):
            yield (keyword,), schema[keyword]
    for keyword in lists:
        if isinstance(schema.get(keyword), list):
            yield from (((keyword, index), each) for index, each in enumerate(schema[keyword]))
    for keyword in maps:
        if isinstance(schema.get(keyword), dict):
            yield from (((keyword, name), each) for name, each in schema[keyword].items())


class SchemaDocument:
    """A whole schema, within which references point."""

    def __init__(self, root: Schema, anchors: dict[str, Pointer]) -> None:
        self.root = root
        self._anchors = anchors
        self._id = root.get("$id", root.get("id"))

    def with_root(self, root: Schema) -> SchemaDocument:
        """The same document after something was added to its root."""
        return SchemaDocument(root, self._anchors)

    def targets(self, schema: Schema) -> Iterator[tuple[Pointer, Any]]:
        """Give the targets of this schema's references. Raises SchemaError where one leaves the document or hangs."""
        for keyword in _REFERENCES:
            reference = schema.get(keyword)
            if isinstance(reference, str):
                pointer = self._pointer(reference)
                yield pointer, self.at(pointer)

    def parts(self, schema: Schema | None = None) -> Iterator[Schema]:
        """A schema (the root) and all it is combined from, each once: what looks at the same place, not negated."""
        stack: list[Any] = [self.root if schema is None else schema]
        ids: set[int] = set()
        while stack:
            part = stack.pop()
            if isinstance(part, dict) and id(part) not in ids:
                ids.add(id(part))
                yield part
                stack.extend(child for steps, child in same_place(part) if steps[0] != "not")
                stack.extend(target for _, target in self.targets(part))

    def at(self, pointer: Pointer) -> Any:
        """The schema at a place of the document. Raises SchemaError."""
        place: Any = self.root
        for step in pointer:
            if isinstance(place, dict) and step in place:
                place = place[step]
            elif isinstance(place, list) and str(step).isdecimal() and int(step) < len(place):
                place = place[int(step)]
            else:
                raise SchemaError(f"a $ref points to {text_of(pointer)}, which does not exist")
        if not isinstance(place, dict | bool):
            raise SchemaError(f"a $ref points to {text_of(pointer)}, which is not a schema")
        return place

    def _pointer(self, reference: str) -> Pointer:
        base, _, fragment = reference.partition("#")
        if base and base != str(self._id).partition("#")[0]:
            raise SchemaError(
                f"a $ref points outside the schema: {reference[:200]}",
                remedy="Put what it refers to under $defs; nothing is ever fetched.",
            )
        if fragment and not fragment.startswith("/"):
            if fragment not in self._anchors:
                raise SchemaError(f"a $ref names the anchor {fragment[:200]!r}, which does not exist")
            return self._anchors[fragment]
        return tuple(_unescaped(step) for step in fragment.split("/")[1:])


def anchors_of(schema: Schema, pointer: Pointer) -> dict[str, Pointer]:
    """The names this schema gives itself."""
    return {schema[keyword]: pointer for keyword in _ANCHORS if isinstance(schema.get(keyword), str)}


def text_of(pointer: Pointer) -> str:
    """A place as a JSON pointer (RFC 6901); the root is the empty string."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)


def _unescaped(step: str) -> str:
    decoded = re.sub(
        rb"%([0-9A-Fa-f]{2})", lambda match: bytes.fromhex(match[1].decode()), step.encode(errors="replace")
    )
    return decoded.decode(errors="replace").replace("~1", "/").replace("~0", "~")


MAX_DEPTH: Final = 32
"""Schemas that may lie within one another."""
MAX_SUBSCHEMAS: Final = 2_000
"""Schemas written in one document."""
MAX_EXPANDED: Final = 20_000
"""The same with every reference written out; a call may check each of them."""
MAX_BYTES: Final = 256_000
"""Length of the canonical form."""
MAX_PATTERNS: Final = 100
"""Regular expressions; each may take up to MAX_PATTERN_BYTES once compiled."""
MAX_PATTERN_BYTES: Final = 1 << 20

_REMEDY: Final = "The tool's owner has to simplify its schema."


class SchemaShape(msgspec.Struct, frozen=True):
    """The shape of a schema."""

    document: SchemaDocument
    recursive: bool
    """Whether it refers to itself, so that an instance of any depth is looked at to the bottom."""


def check_limits(schema: Schema) -> SchemaShape:
    """Measure a schema. Raises SchemaError, which names the limit, where it goes beyond one."""
    survey = _Survey(schema)
    try:
        size = len(canonical(schema))
    except NotCanonicalError as error:
        raise SchemaError(f"the schema has no canonical form: {error.message}", remedy=error.remedy) from error
    if size > MAX_BYTES:
        raise _beyond(f"takes {size} bytes", MAX_BYTES)
    return SchemaShape(survey.document, _expand(survey.document))


def _beyond(what: str, limit: int) -> SchemaError:
    return SchemaError(f"the schema {what}; the limit is {limit}", remedy=_REMEDY)


class _Survey:
    """One walk over everything written, including what only a reference finds."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._draft4 = "draft-04" in str(root.get("$schema"))
        self._count = self._patterns = 0
        self._surveyed: set[int] = set()
        self._referring: list[Schema] = []
        anchors: dict[str, Pointer] = {}
        self._walk(root, (), anchors)
        self.document = SchemaDocument(root, anchors)
        while self._referring:
            for pointer, target in self.document.targets(self._referring.pop()):
                if isinstance(target, dict) and id(target) not in self._surveyed:
                    self._walk(target, pointer, anchors)

    def _walk(self, start: Schema, at: Pointer, anchors: dict[str, Pointer]) -> None:
        stack: list[tuple[Any, Pointer, int]] = [(start, at, 1)]
        while stack:
            schema, pointer, depth = stack.pop()
            self._count += 1
            if self._count > MAX_SUBSCHEMAS:
                raise _beyond(f"holds more than {MAX_SUBSCHEMAS} subschemas", MAX_SUBSCHEMAS)
            if depth > MAX_DEPTH:
                raise _beyond(f"is nested {depth} levels deep", MAX_DEPTH)
            if isinstance(schema, dict):
                self._look(schema, pointer)
                anchors.update(anchors_of(schema, pointer))
                stack.extend((child, pointer + steps, depth + 1) for steps, child in children(schema))

    def _look(self, schema: Schema, pointer: Pointer) -> None:
        self._surveyed.add(id(schema))
        self._referring.append(schema)
        patterns = schema.get("patternProperties")
        self._patterns += isinstance(schema.get("pattern"), str) + (len(patterns) if isinstance(patterns, dict) else 0)
        if self._patterns > MAX_PATTERNS:
            raise _beyond(f"holds more than {MAX_PATTERNS} regular expressions", MAX_PATTERNS)
        own_id = schema.get("$id", schema.get("id") if self._draft4 else None)
        if schema is not self._root and isinstance(own_id, str):
            raise SchemaError(
                f"{text_of(pointer)} has an $id of its own, so that references within it would mean something else",
                remedy="Remove the $id, and refer to it by its place.",
            )


def _expand(document: SchemaDocument) -> bool:
    """Return whether the schema is recursive. Raises SchemaError where it expands beyond MAX_EXPANDED."""
    cost: dict[int, int] = {}
    links: dict[int, list[Any]] = {}
    path: set[int] = set()
    stack = [document.root]
    recursive = False
    while stack:
        schema = stack[-1]
        me = id(schema)
        if me not in links:  # on the way down
            links[me] = [child for steps, child in children(schema) if steps[0] not in DEFINITIONS]
            links[me] += [target for _, target in document.targets(schema)]
            path.add(me)
            below = [each for each in links[me] if isinstance(each, dict)]
            recursive = recursive or any(id(each) in path for each in below)
            stack.extend(each for each in below if id(each) not in links)
            continue
        stack.pop()
        if me in path:  # on the way up; an ancestor counts as one: it is checked again one level further down the value
            path.remove(me)
            cost[me] = 1 + sum(cost.get(id(each), 1) for each in links[me])
            if cost[me] > MAX_EXPANDED:
                raise _beyond(f"expands to more than {MAX_EXPANDED} subschemas", MAX_EXPANDED)
    return recursive


_OTHERS: Final = ("additionalProperties", "unevaluatedProperties")
"""Keywords that say what becomes of fields not declared."""
_DECLARED: Final = ("properties", "patternProperties")
_BY_NAME: Final = ("properties", "$defs")
"""Keywords with a schema for each name; the next ones have a schema, or a list of them."""
_NESTED: Final = ("items", "prefixItems", "additionalProperties", "anyOf", "allOf", "oneOf")
_WITHOUT_UNEVALUATED: Final = ("draft-03", "draft-04", "draft-06", "draft-07")


def closed(document: SchemaDocument) -> Schema:
    """The root, closed, unless it states itself what becomes of other fields, or no field is declared at all.

    Where only the root declares fields, `additionalProperties` closes it. Where it is combined from schemas that
    declare some of their own, that would forbid theirs, so that it takes `unevaluatedProperties` (draft 2019-09 and
    later); an older draft has nothing that would be right, and its schema stays open.
    """
    root = document.root
    if _names(root, _OTHERS):
        return root
    declaring = [part for part in document.parts() if _names(part, (*_DECLARED, *_OTHERS))]
    if all(part is root for part in declaring):
        return {**root, "additionalProperties": False} if declaring else root
    if any(draft in str(root.get("$schema")) for draft in _WITHOUT_UNEVALUATED):
        return root
    return {**root, "unevaluatedProperties": False}


def closed_within(schema: Any) -> Any:
    """A schema that types stand behind, with every object in it closed that declares its fields.

    A type drops what it does not know: the approver would see it, and it would not be what runs (rule 15).
    """
    if isinstance(schema, list):
        return [closed_within(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {
        word: {name: closed_within(entry) for name, entry in value.items()}
        if word in _BY_NAME and isinstance(value, dict)
        else closed_within(value)
        if word in _NESTED
        else value
        for word, value in schema.items()
    }
    return {**whole, "additionalProperties": False} if "properties" in whole and not _names(whole, _OTHERS) else whole


def _names(schema: Schema, keywords: tuple[str, ...]) -> bool:
    return any(keyword in schema for keyword in keywords)
