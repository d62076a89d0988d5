"""Where schemas lie within a schema, and what a reference inside it points at.

Knows the keywords of JSON Schema drafts 4 to 2020-12 alike: a keyword that a draft lacks is counted all the same, which
only makes the limits stricter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from remit.errors import SchemaError

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
    schema: Schema, one: tuple[str, ...], lists: tuple[str, ...], maps: tuple[str, ...]
) -> Iterator[tuple[Pointer, Any]]:
    for keyword in one:
        if isinstance(schema.get(keyword), dict | bool):
            yield (keyword,), schema[keyword]
    for keyword in lists:
        if isinstance(schema.get(keyword), list):
            yield from (((keyword, index), each) for index, each in enumerate(schema[keyword]))
    for keyword in maps:
        if isinstance(schema.get(keyword), dict):
            yield from (((keyword, name), each) for name, each in schema[keyword].items())


class Document:
    """A whole schema, within which references point."""

    def __init__(self, root: Schema, anchors: dict[str, Pointer]) -> None:
        self.root = root
        self._anchors = anchors
        self._id = root.get("$id", root.get("id"))

    def with_root(self, root: Schema) -> Document:
        """The same document after something was added to its root."""
        return Document(root, self._anchors)

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
        seen: set[int] = set()
        while stack:
            part = stack.pop()
            if isinstance(part, dict) and id(part) not in seen:
                seen.add(id(part))
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
        rb"%([0-9A-Fa-f]{2})", lambda found: bytes.fromhex(found[1].decode()), step.encode(errors="replace")
    )
    return decoded.decode(errors="replace").replace("~1", "/").replace("~0", "~")
