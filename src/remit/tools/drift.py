"""The meaning of a change of a tool's schema for calls that were made, or recorded, under the old one.

    identical         the same schema
    annotation_only   other words for people and models, nothing that is checked
    compatible        what was good stays good: the new input takes all the old one took, the new result fits the old
    breaking          anything else, and whatever cannot be decided

What follows from it is policy (contract: versioning, "Mismatch").
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from remit.canonical import digest
from remit.errors import NotCanonicalError, SchemaError
from remit.tools.limits import MAX_PATTERN_BYTES, Schema, SchemaDocument, check_limits, children, closed, same_place

MAX_COMBINATIONS: Final = 8
MAX_ALTERNATIVES: Final = 100
MAX_NESTING: Final = 64

_WORDS: Final = frozenset(
    {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"}
)
_UNIONS: Final = ("anyOf", "oneOf")
_SWITCHES: Final = ("if", "dependentSchemas", "dependencies")


class DriftClass(StrEnum):
    """The class of a change, from harmless to harmful."""

    IDENTICAL = "identical"
    ANNOTATION_ONLY = "annotation_only"
    COMPATIBLE = "compatible"
    BREAKING = "breaking"


def worst(*drifts: DriftClass) -> DriftClass:
    """The most harmful of several changes; identical if there is none."""
    return max(drifts, key=list(DriftClass).index, default=DriftClass.IDENTICAL)


def compare_input(old: Schema | None, new: Schema | None) -> DriftClass:
    """Return the change of an input schema. Roots are closed first: no caller sends an argument never declared.

    None stands for a tool without a schema, which cannot be called: any change from or to it is breaking.
    """
    if old is None or new is None:
        return DriftClass.IDENTICAL if old is new else DriftClass.BREAKING
    return _compare(old, new, closing=True, wider=True)


def compare_output(old: Schema | None, new: Schema | None) -> DriftClass:
    """Changes of an output schema; None promises nothing. Roots stay as written: readers skip what is new."""
    if old is None:
        return DriftClass.IDENTICAL if new is None else DriftClass.COMPATIBLE
    return DriftClass.BREAKING if new is None else _compare(old, new, closing=False, wider=False)


def _compare(old: Schema, new: Schema, *, closing: bool, wider: bool) -> DriftClass:
    try:
        if digest(old) == digest(new):
            return DriftClass.IDENTICAL
        documents = [check_limits(old).document, check_limits(new).document]
    except (SchemaError, NotCanonicalError):
        return DriftClass.BREAKING
    if digest(_without_words(old)) == digest(_without_words(new)):
        return DriftClass.ANNOTATION_ONLY
    if not all(_decidable(document) for document in documents):
        return DriftClass.BREAKING
    before, after = [closed(document) if closing else document.root for document in documents]
    holds = _covers(after, before) if wider else _covers(before, after)
    return DriftClass.COMPATIBLE if holds else DriftClass.BREAKING


def _covers(outer: Schema, inner: Schema) -> bool:
    """Return whether it is certain that the outer schema accepts all the inner one does."""
    from jsonschema_rs import RegexOptions, canonical, canonicalize  # noqa: PLC0415 - not needed to start

    limits = RegexOptions(size_limit=MAX_PATTERN_BYTES, dfa_size_limit=MAX_PATTERN_BYTES)
    try:
        sides = [canonicalize(side, offline=True, pattern_options=limits) for side in _in_one_dialect(outer, inner)]
        return sides[0].covers(sides[1]) is canonical.Containment.YES
    except ValueError:  # not a valid schema, or one that has no normal form
        return False


def _in_one_dialect(*schemas: Schema) -> list[Schema]:
    """The schemas without their dialects, where these differ but all that is used means the same in each."""
    dialects = {str(schema.get("$schema")) for schema in schemas}
    if len(dialects) == 1 or not all(_means_the_same_in_all_dialects(schema) for schema in schemas):
        return list(schemas)
    return [{keyword: value for keyword, value in schema.items() if keyword != "$schema"} for schema in schemas]


_STABLE: Final = _WORDS | {
    *("$schema", "$defs", "definitions", "type", "enum", "const", "allOf", "anyOf", "oneOf", "not"),
    *("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
    *("items", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "multipleOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
"""Keywords that mean the same from draft 6 to 2020-12; `$ref` does where nothing stands beside it."""


def _means_the_same_in_all_dialects(schema: Schema) -> bool:
    if "draft-04" in str(schema.get("$schema")) or "draft-03" in str(schema.get("$schema")):
        return False
    try:
        return all(
            (set(part) <= _STABLE and not isinstance(part.get("items"), list)) or set(part) - _WORDS == {"$ref"}
            for part in _all(SchemaDocument(schema, {}))
        )
    except SchemaError:  # a reference by anchor, which older dialects spell otherwise
        return False


def _without_words(schema: Any) -> Any:
    """A schema without what only people and models read."""
    if not isinstance(schema, dict):
        return schema
    bare = {keyword: value for keyword, value in schema.items() if keyword not in _WORDS}
    for steps, child in children(schema):
        keyword, *rest = steps
        if not rest:
            bare[keyword] = _without_words(child)
            continue
        if bare[keyword] is schema[keyword]:
            bare[keyword] = schema[keyword].copy()
        bare[keyword][rest[0]] = _without_words(child)
    return bare


def _decidable(document: SchemaDocument) -> bool:
    """Return whether the schemas can be compared in milliseconds.

    The normal form of alternatives that stand beside each other is the product of them: a few are fine, a schema made
    of nothing else would take seconds.
    """
    weights = _Weights(document)
    for schema in _all(document):
        unions, combinations = weights.of(schema)
        if combinations > (MAX_ALTERNATIVES if unions <= 1 else MAX_COMBINATIONS):
            return False
    return True


class _Weights:
    """The number of alternatives that a schema offers at its own place: unions that take part, and combinations."""

    def __init__(self, document: SchemaDocument) -> None:
        self._document = document
        self._known: dict[int, tuple[int, int]] = {}

    def of(self, schema: Any, nesting: int = 0) -> tuple[int, int]:
        """`(unions, combinations)`; more than allowed where the schema is nested too deeply to tell."""
        if not isinstance(schema, dict):
            return 0, 1
        if nesting > MAX_NESTING:
            return MAX_COMBINATIONS, MAX_COMBINATIONS + 1
        if id(schema) not in self._known:
            self._known[id(schema)] = 0, 1  # what refers back to itself adds nothing
            self._known[id(schema)] = self._weigh(schema, nesting + 1)
        return self._known[id(schema)]

    def _weigh(self, schema: Schema, nesting: int) -> tuple[int, int]:
        unions, combinations = 0, 1
        parts = [target for _, target in self._document.targets(schema)]
        parts += [child for steps, child in same_place(schema) if steps[0] not in _UNIONS]
        for part in parts:
            inner = self.of(part, nesting)
            unions, combinations = unions + inner[0], combinations * inner[1]
        for keyword in _UNIONS:
            if isinstance(schema.get(keyword), list):
                branches = [self.of(branch, nesting) for branch in schema[keyword]]
                unions += 1 + sum(inner for inner, _ in branches)
                combinations *= sum(each for _, each in branches)
        switches = sum(keyword in schema for keyword in _SWITCHES)
        return unions + switches, min(combinations, MAX_ALTERNATIVES + 1) * 2**switches


def _all(document: SchemaDocument) -> Iterator[Schema]:
    """Every schema of a document, each once."""
    stack: list[Any] = [document.root]
    ids: set[int] = set()
    while stack:
        schema = stack.pop()
        if isinstance(schema, dict) and id(schema) not in ids:
            ids.add(id(schema))
            yield schema
            stack.extend(child for _, child in children(schema))
            stack.extend(target for _, target in document.targets(schema))
