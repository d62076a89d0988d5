"""A schema as an MCP server writes it, made one that the gate can hold calls to.

It only ever becomes wider: the server checks its own arguments, so that a call which passes here and should not is
refused there. A tool that is not its author's to fix would be lost to its user otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec

from remit.errors import SchemaError
from remit.tools.limits import Pointer, Schema, SchemaDocument, check_limits, children, text_of
from remit.tools.schema import validator_of

_VALUES: Final = ("const", "default")
"""Keywords for which null is a value."""
_EVERY_NAME: Final = ""
"""The regular expression that finds itself in every text."""


class ReadableSchema(NamedTuple):
    """A schema to check values against."""

    schema: Schema | None
    unchecked: tuple[str, ...] = ()
    """Where it had regular expressions that cannot be run here (JSON pointers)."""


def readable(value: object) -> ReadableSchema:
    """The schema, as written as far as the gate can run it; what is not a schema admits nothing.

    A keyword with null counts as absent, since some servers write their empty fields so. A regular expression that
    cannot be run in linear time, such as one with look-around or a back reference, is left out.
    """
    if value is None:
        return ReadableSchema(None)
    if not isinstance(value, dict):
        return ReadableSchema({"type": repr(value)[:50]})
    if not any(_empty(schema) or any(_expressions(schema)) for _, schema in _schemas(value)):
        return ReadableSchema(value)
    try:
        copy: Schema = msgspec.json.decode(msgspec.json.encode(value))
    except RecursionError:  # deeper than any schema may be
        return ReadableSchema(value)
    emptied = False
    for _, schema in _schemas(copy):
        for keyword in _empty(schema):
            del schema[keyword]
            emptied = True
    try:
        places = tuple(_loosen(check_limits(copy).document))
    except SchemaError:  # the catalog says what is wrong
        return ReadableSchema(copy)
    return ReadableSchema(copy if places or emptied else value, places)


def _schemas(root: Schema) -> Iterator[tuple[Pointer, Schema]]:
    """A schema and those within it; one that is found may be changed before the next one is asked for."""
    waiting: list[tuple[Pointer, Schema]] = [((), root)]
    while waiting:
        place, schema = waiting.pop()
        yield place, schema
        waiting += [(place + steps, child) for steps, child in children(schema) if isinstance(child, dict)]


def _empty(schema: Schema) -> list[str]:
    return [keyword for keyword, value in schema.items() if value is None and keyword not in _VALUES]


# --- regular expressions


def _loosen(document: SchemaDocument) -> Iterator[str]:
    """Leave out the regular expressions that cannot be run; yields where they were."""
    loose: set[int] = set()
    for place, schema in list(_schemas(document.root)):
        for steps, expression in list(_expressions(schema)):
            if _runs(expression):
                continue
            loose.add(id(schema))
            yield text_of(place + steps)
            if steps == ("pattern",):
                del schema["pattern"]
            else:  # the names it stands for are declared, whichever they are
                del schema["patternProperties"][expression]
                schema["patternProperties"][_EVERY_NAME] = {}
    if loose:
        _widen(document, loose)


def _expressions(schema: Schema) -> Iterator[tuple[Pointer, str]]:
    if isinstance(schema.get("pattern"), str):
        yield ("pattern",), schema["pattern"]
    if isinstance(schema.get("patternProperties"), dict):
        yield from ((("patternProperties", name), name) for name in schema["patternProperties"])


def _runs(expression: str) -> bool:
    try:
        validator_of({"pattern": expression})
    except SchemaError:
        return False
    return True


def _widen(document: SchemaDocument, loose: set[int]) -> None:
    """Leave out what would refuse more, now that a schema admits more: its negation, the choice of one, and so on."""
    schemas = [schema for _, schema in _schemas(document.root)]
    wider = _reaching(document, schemas, loose)
    for schema in schemas:
        if wider(schema.get("not")):
            del schema["not"]
        if wider(schema.get("contains")):
            schema.pop("maxContains", None)
        choice, every = schema.get("oneOf"), schema.get("allOf", [])
        if not isinstance(every, list):  # no schema: the catalog says so
            continue
        if isinstance(choice, list) and any(wider(option) for option in choice):
            schema["allOf"] = every = [*every, {"anyOf": schema.pop("oneOf")}]
        if wider(schema.get("if")):  # what either side declares stays declared
            sides = [{"allOf": [schema.pop("if"), schema.pop("then", {})]}, schema.pop("else", {}), {}]
            schema["allOf"] = [*every, {"anyOf": sides}]


def _reaching(document: SchemaDocument, schemas: list[Schema], loose: set[int]) -> Callable[[object], bool]:
    """Return whether a schema holds one of the `loose`, or refers to one, however far away."""
    links = {
        id(schema): [id(node) for _, node in (*children(schema), *document.targets(schema)) if isinstance(node, dict)]
        for schema in schemas
    }
    grown = True
    while grown:
        more = {node for node, below in links.items() if node not in loose and not loose.isdisjoint(below)}
        loose |= more
        grown = bool(more)
    return lambda schema: id(schema) in loose
