"""What a tool's schema declares for what a call leaves out: shown to the approver of the call, and never put into it.

A default is an annotation (JSON Schema 2020-12, section 9.2): the tool fills it in by itself. It stands in the schema,
so that the contract which an approval is bound to covers it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from remit.canonical import MAX_DEPTH
from remit.tools.subschemas import Document, Pointer, Schema, text_of

_MOST: Final = 1_000
"""Defaults of one call; a schema may declare more than anyone reads."""
_STEPS: Final = 10_000
"""Objects and lists of one call that are looked into."""
_EITHER: Final = ("anyOf", "oneOf")
_DEFAULT: Final = "default"


def defaults_of(document: Document, value: Any) -> dict[str, Any] | None:
    """Return the defaults that hold where a value leaves something out, by JSON pointer (RFC 6901).

    Where several alternatives of a schema fit the value, or none, nothing is said of what is below. None: it would take
    too long to say, or to read.
    """
    found: dict[str, Any] = {}
    pending: deque[tuple[Schema, Any, Pointer]] = deque([(document.root, value, ())])
    for _ in range(_STEPS):
        if not pending:
            return found
        schema, item, place = pending.popleft()
        for name, below in _below(document, schema, item):
            here = (*place, name)
            if isinstance(name, int) or name in item:
                left = item[name]
            else:
                part = next((part for part in _parts(document, below, None) if _DEFAULT in part), None)
                if part is None or len(here) > MAX_DEPTH:
                    continue
                left = found.setdefault(text_of(here), part[_DEFAULT])
            if isinstance(left, dict | list):
                pending.append((below, left, here))
        if len(found) > _MOST:
            break
    return None


def _below(document: Document, schema: Schema, item: Any) -> Iterator[tuple[str | int, Schema]]:
    """Yield each member or item that is declared, and each that is there, with its schema."""
    for part in _parts(document, schema, item):
        if isinstance(item, dict):
            declared = part.get("properties")
            declared = declared if isinstance(declared, dict) else {}
            others = part.get("additionalProperties")
            yield from ((name, below) for name, below in declared.items() if isinstance(below, dict))
            if isinstance(others, dict):
                yield from ((name, others) for name in item if name not in declared)
        elif isinstance(item, list):
            first = part.get("prefixItems")
            first = first if isinstance(first, list) else []
            yield from ((at, below) for at, below in enumerate(first[: len(item)]) if isinstance(below, dict))
            if isinstance(part.get("items"), dict):
                yield from ((at, part["items"]) for at in range(len(first), len(item)))


def _parts(document: Document, schema: Schema, item: Any) -> Iterator[Schema]:
    """Yield a schema and all that it is combined from at the same place, of alternatives the only one that fits."""
    stack: list[Any] = [schema]
    seen: set[int] = set()
    while stack:
        part = stack.pop(0)
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        stack += [target for _, target in document.targets(part)]
        both = part.get("allOf")
        stack += both if isinstance(both, list) else []
        for keyword in _EITHER:
            choices = part.get(keyword)
            fitting = [one for one in choices if _fits(document, one, item)] if isinstance(choices, list) else []
            stack += fitting if len(fitting) == 1 else []


def _fits(document: Document, schema: Any, item: Any) -> bool:
    """Return whether a value can be what an alternative means: by its type, what it requires and its constants."""
    if not isinstance(schema, dict):
        return False
    kind = "object" if isinstance(item, dict) else "array" if isinstance(item, list) else ""
    for part in (schema, *(target for _, target in document.targets(schema))):
        if not isinstance(part, dict):
            return False
        declared = part.get("type", kind)
        if kind not in (declared if isinstance(declared, list) else [declared]):
            return False
        if isinstance(item, dict) and not _has_required(part, item):
            return False
    return bool(kind)


def _has_required(part: Schema, item: dict[str, Any]) -> bool:
    if not set(part.get("required", ())) <= item.keys():
        return False
    declared = part.get("properties")
    for name, below in declared.items() if isinstance(declared, dict) else ():
        if name in item and isinstance(below, dict):
            allowed = [below["const"]] if "const" in below else below.get("enum", [item[name]])
            if item[name] not in allowed:
                return False
    return True
