"""Reference expressions of a plan: `${inputs.folder}`, `${find.value.items.0.path}`, `${read.value["odd key"]}`.

A text that is one reference and nothing else stands for the value itself and keeps its type; inside other text a
reference is written into it, which strings, numbers and booleans can be. `$${` is a literal `${`; so that a dollar may
also stand before a reference, every two dollars right before `{` are one (`$$${inputs.price}` is `$`, then the price).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

import msgspec

from remit.codes import Code
from remit.errors import PlanError, RunError
from remit.regex import regex

INPUTS: Final = "inputs"
ITEM: Final = "item"
INDEX: Final = "index"
RESERVED: Final = frozenset({INPUTS, ITEM, INDEX})
"""Roots that are not nodes, so that no node may be called by them."""
RESULT_FIELDS: Final = ("ok", "value", "code", "reason", "by", "failures")
"""The fields of a node's result; a bare `${node}` is its `value`."""

_OPENING: Final = regex(r"(\$+)\{")
_EXPRESSION: Final = regex(r'[ \t]*([A-Za-z_][A-Za-z0-9_-]*)((?:\.[A-Za-z0-9_-]+|\["(?:[^"\\\n]|\\.)*"\])*)[ \t]*\}')
_SEGMENT: Final = regex(r'\.([A-Za-z0-9_-]+)|\[("(?:[^"\\\n]|\\.)*")\]')
_PLAIN: Final = regex(r"[A-Za-z0-9_-]+")
_POSITION: Final = regex(r"0|[1-9][0-9]{0,8}")
_SHOWN: Final = 8
"""Keys of an object that a message names."""
_SHORT: Final = 200
"""Characters of a text whose parts are kept at hand."""
_TEXT_SHOWN: Final = 40
"""Characters of a text that a message shows."""


class Reference(msgspec.Struct, frozen=True):
    """A root (`inputs`, `item`, `index` or a node) and the way from there."""

    root: str
    path: tuple[str, ...] = ()

    @property
    def node(self) -> str | None:
        """The node referred to, if it is one."""
        return None if self.root in RESERVED else self.root

    def __str__(self) -> str:
        return "${" + self.root + "".join(map(_step, self.path)) + "}"


Part = str | Reference


class ReferenceSyntaxError(PlanError):
    """A text holds something that begins like a reference and is not one."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text, remedy="Write ${node.value.field}, ${inputs.name}, or $${ for the two characters.")


def parse(text: str) -> tuple[Part, ...]:
    """A text's literal parts and references, in order; no part is empty. Raises ReferenceSyntaxError."""
    return _parse_short(text) if len(text) <= _SHORT else _parse(text)


def _parse(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    literal: list[str] = []
    at = 0
    while opening := _OPENING.search(text, at):
        dollars = len(opening[1])
        literal.append(text[at : opening.start()] + "$" * (dollars // 2))
        at = opening.end()
        if dollars % 2 == 0:
            literal.append("{")
            continue
        reference, at = _reference(text, at)
        _close(literal, parts)
        parts.append(reference)
    literal.append(text[at:])
    _close(literal, parts)
    return tuple(parts)


_parse_short = lru_cache(maxsize=4096)(_parse)


def single(text: str) -> Reference | None:
    """The reference, if the text is exactly one. Raises ReferenceSyntaxError."""
    match parse(text):
        case (Reference() as reference,):
            return reference
        case _:
            return None


def unparse(parts: tuple[Part, ...]) -> str:
    """The text whose parts these are: the inverse of `parse`."""
    written: list[str] = []
    for index, part in enumerate(parts):
        if isinstance(part, Reference):
            written.append(str(part))
            continue
        text = _OPENING.sub(lambda opening: opening[1] * 2 + "{", part)
        if index + 1 < len(parts):  # dollars that end up right before a reference are doubled too
            text += "$" * (len(text) - len(text.rstrip("$")))
        written.append(text)
    return "".join(written)


def texts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text in a JSON value with its path, in order; the keys of objects hold no references."""
    match value:
        case str():
            yield path, value
        case list():
            for index, item in enumerate(value):
                yield from texts(item, (*path, index))
        case dict():
            for key, item in value.items():
                yield from texts(item, (*path, key))
        case _:
            return


def references(value: Any) -> Iterator[Reference]:
    """Every reference in a JSON value, in order. Raises ReferenceSyntaxError."""
    for _, text in texts(value):
        yield from (part for part in parse(text) if isinstance(part, Reference))


def fill(value: Any, scope: Mapping[str, Any], where: str) -> Any:
    """The value with every reference replaced by what it stands for in `scope` (see `resolve`).

    Raises RunError `PLAN_REFERENCE_MISSING` or, where a value cannot be written into text, `PLAN_REFERENCE_UNFIT`; both
    name `where`, the place in the plan.
    """
    match value:
        case str():
            parts = parse(value)
            if len(parts) == 1 and isinstance(parts[0], Reference):
                return resolve(parts[0], scope, where)
            return "".join(part if isinstance(part, str) else _written(part, scope, where) for part in parts)
        case list():
            return [fill(item, scope, where) for item in value]
        case dict():
            return {key: fill(item, scope, where) for key, item in value.items()}
        case _:
            return value


def resolve(reference: Reference, scope: Mapping[str, Any], where: str) -> Any:
    """Return what a reference stands for.

    `scope` holds `inputs`, and where they exist `item` and `index`, and the result of each finished node: an object
    with some of RESULT_FIELDS (one that is absent counts as null), or None for a node that was skipped, of which every
    path is null. Raises RunError `PLAN_REFERENCE_MISSING`.
    """
    value, path = scope[reference.root], reference.path
    if reference.node is not None:
        if value is None:
            return None
        field, *rest = path or ("value",)
        if rest and not value["ok"] and value.get(field) is None:
            _missing(reference, where, f"node {reference.root} failed with {value['code']} and has no {field}")
        value, path = value.get(field), tuple(rest)
    begun = len(reference.path) - len(path)
    for index, segment in enumerate(path):
        try:
            value = _descend(value, segment)
        except LookupError as error:
            parent = Reference(reference.root, reference.path[: begun + index])
            _missing(reference, where, f"{parent} {error.args[0]}")
    return value


def _reference(text: str, at: int) -> tuple[Reference, int]:
    """The reference whose expression begins at `at`, and where the text goes on."""
    match = _EXPRESSION.match(text, at)
    if match is None:
        end = text.find("}", at)
        if end < 0:
            raise ReferenceSyntaxError("`${` without its `}`")
        raise ReferenceSyntaxError(f"`${{{text[at:end]}}}`, which is not a reference")
    path = tuple(_key(step[2]) if step[2] else step[1] for step in _SEGMENT.finditer(match[2]))
    return Reference(match[1], path), match.end()


def _key(quoted: str) -> str:
    """The key inside `["…"]`."""
    try:
        return msgspec.json.decode(quoted, type=str)
    except ValueError as error:
        raise ReferenceSyntaxError(f"`[{quoted}]`, which is not a JSON text in brackets") from error


def _close(literal: list[str], parts: list[Part]) -> None:
    """Move the literal text gathered so far to the parts."""
    if text := "".join(literal):
        parts.append(text)
    literal.clear()


def _step(segment: str) -> str:
    """A segment as it is written."""
    return f".{segment}" if _PLAIN.fullmatch(segment) else f"[{msgspec.json.encode(segment).decode()}]"


def _descend(value: Any, segment: str) -> Any:
    """One step into a value. Raises LookupError with the reason."""
    match value:
        case dict():
            if segment in value:
                return value[segment]
            shown = ", ".join(list(value)[:_SHOWN]) + (", …" if len(value) > _SHOWN else "")
            raise LookupError(f"has no {segment!r}; it has {shown or 'no fields'}")
        case list():
            if not _POSITION.fullmatch(segment):
                raise LookupError(f"is a list, and {segment!r} is not a position in it")
            if int(segment) >= len(value):
                raise LookupError(f"has {len(value)} items, the first at 0")
            return value[int(segment)]
        case _:
            raise LookupError(f"is {kind_of(value)}, which has no parts")


def _written(reference: Reference, scope: Mapping[str, Any], where: str) -> str:
    """A reference's value inside other text."""
    value = resolve(reference, scope, where)
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, list | dict):
        raise RunError(
            f"{where}: {reference} is {kind_of(value)}, which cannot be written into a text",
            code=Code.PLAN_REFERENCE_UNFIT,
            remedy="Refer to a string, number or boolean inside it, or let the reference stand alone.",
        )
    return msgspec.json.encode(value).decode()


def _missing(reference: Reference, where: str, reason: str) -> NoReturn:
    raise RunError(
        f"{where}: {reference} is missing: {reason}",
        code=Code.PLAN_REFERENCE_MISSING,
        remedy="Correct the path, or give the node a `when` so that it only runs where the value exists.",
    )


def kind_of(value: Any) -> str:
    """Return what a JSON value is, for people: `a list`, `null`, `the text "x"`."""
    match value:
        case None | bool():
            return msgspec.json.encode(value).decode()
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the text "{value if len(value) <= _TEXT_SHOWN else value[: _TEXT_SHOWN - 1] + "…"}"'
        case list():
            return "a list"
        case _:
            return "an object"
