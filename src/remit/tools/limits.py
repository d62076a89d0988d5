"""The limits of a schema: a tool's owner writes it, and everyone who calls the tool pays for it.

The largest of 639 schemas seen in the wild had 5 levels, 50 subschemas and 7.3 kB; the limits leave room and stop what
was made to hurt. References are followed, because a chain of doubled ones turns 26 lines into 2^26 checks.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from remit.canonical import canonical
from remit.errors import NotCanonicalError, SchemaError
from remit.tools.subschemas import DEFINITIONS, Document, Pointer, Schema, anchors_of, children, text_of

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


class Shape(NamedTuple):
    """The shape of a schema."""

    document: Document
    recursive: bool
    """Whether it refers to itself, so that an instance of any depth is looked at to the bottom."""


def check_limits(schema: Schema) -> Shape:
    """Measure a schema. Raises SchemaError, which names the limit, where it goes beyond one."""
    survey = _Survey(schema)
    try:
        size = len(canonical(schema))
    except NotCanonicalError as error:
        raise SchemaError(f"the schema has no canonical form: {error.message}", remedy=error.remedy) from error
    if size > MAX_BYTES:
        raise _beyond(f"takes {size} bytes", MAX_BYTES)
    return Shape(survey.document, _expand(survey.document))


def _beyond(what: str, limit: int) -> SchemaError:
    return SchemaError(f"the schema {what}; the limit is {limit}", remedy=_REMEDY)


class _Survey:
    """One walk over everything written, including what only a reference finds."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._draft4 = "draft-04" in str(root.get("$schema"))
        self._count = self._patterns = 0
        self._seen: set[int] = set()
        self._referring: list[Schema] = []
        anchors: dict[str, Pointer] = {}
        self._walk(root, (), anchors)
        self.document = Document(root, anchors)
        while self._referring:
            for pointer, target in self.document.targets(self._referring.pop()):
                if isinstance(target, dict) and id(target) not in self._seen:
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
        self._seen.add(id(schema))
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


def _expand(document: Document) -> bool:
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
