"""Words for what changed in a schema: a line for each place that differs, those about descriptions last.

It only words a difference. What the difference means for recorded calls is `remit.tools.drift`'s to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

Schema = Mapping[str, Any]
MOST: Final = 40
"""Lines that are told; a schema that differs in more places is another schema."""
_DEEPEST: Final = 16
_LONGEST: Final = 60
_NESTED: Final = ("items", "additionalProperties")
_APART: Final = frozenset({"properties", "required", "enum", "$defs", "definitions", *_NESTED})
"""Keywords that are compared by their parts."""
_TEXTS: Final = frozenset({"title", "description", "default", "examples", "$comment", "deprecated"})


def changes(old: Schema | None, new: Schema | None, what: str = "arguments") -> tuple[str, ...]:
    """The differences of two schemas of a tool's `arguments` or `result`, as lines such as `amount: number → integer`.

    A line begins with the place. None stands for no schema.
    """
    if old is None or new is None:
        if old is new:
            return ()
        return (f"{what}: {'no schema any more' if new is None else 'a schema where there was none'}",)
    lines = list(_differences(old, new, "", 0))
    ordered = [text for text in lines if not _is_text(text)] + [text for text in lines if _is_text(text)]
    texts = [text.removeprefix(_QUIET) for text in ordered[:MOST]]
    return (*texts, f"and {len(lines) - MOST} more") if len(lines) > MOST else tuple(texts)


_QUIET: Final = "\0"
"""Marks a line about words that nothing checks."""


def _is_text(line: str) -> bool:
    return line.startswith(_QUIET)


def _differences(old: Any, new: Any, place: str, depth: int) -> Iterator[str]:
    where = place or "as a whole"
    if not isinstance(old, Mapping) or not isinstance(new, Mapping) or depth > _DEEPEST:
        if old != new:
            yield f"{where}: {_shown(old)} → {_shown(new)}"
        return
    yield from _fields(old, new, place, depth)
    yield from _choices(old, new, where)
    for keyword in _NESTED:
        if keyword in old or keyword in new:
            below = f"{place}[]" if keyword == "items" else f"{place}.*".removeprefix(".")
            yield from _nested(old.get(keyword), new.get(keyword), below, depth)
    for keyword in sorted(set(old) | set(new)):
        if keyword not in _APART and old.get(keyword) != new.get(keyword):
            yield _keyword(keyword, old.get(keyword), new.get(keyword), where)


def _fields(old: Schema, new: Schema, place: str, depth: int) -> Iterator[str]:
    before, after = _table(old.get("properties")), _table(new.get("properties"))
    must, must_now = _names(old.get("required")), _names(new.get("required"))
    for name in sorted(set(before) | set(after) | must | must_now):
        below = f"{place}.{name}" if place else name
        if name not in before and name in after:
            yield f"{below}: new, {'required' if name in must_now else 'optional'}"
            continue
        if name in before and name not in after:
            yield f"{below}: removed{', was required' if name in must else ''}"
            continue
        if (name in must) != (name in must_now):
            yield f"{below}: {'required now' if name in must_now else 'optional now'}"
        yield from _differences(before.get(name, {}), after.get(name, {}), below, depth + 1)


def _choices(old: Schema, new: Schema, where: str) -> Iterator[str]:
    before, after = old.get("enum"), new.get("enum")
    if not isinstance(before, list) or not isinstance(after, list):
        if before != after:
            yield _keyword("enum", before, after, where)
        return
    gone, added = (
        [choice for choice in before if choice not in after],
        [choice for choice in after if choice not in before],
    )
    if gone:
        yield f"{where}: no longer {', '.join(map(_shown, gone))}"
    if added:
        yield f"{where}: also {', '.join(map(_shown, added))}"


def _nested(old: Any, new: Any, place: str, depth: int) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _differences(old, new, place, depth + 1)
    elif old != new:
        yield f"{place}: {_shown(old)} → {_shown(new)}"


def _keyword(keyword: str, old: Any, new: Any, where: str) -> str:
    mark = _QUIET if keyword in _TEXTS else ""
    if keyword == "description":
        return f"{mark}{where}: other words"
    name = "" if keyword == "type" else f"{keyword} "
    return f"{mark}{where}: {name}{_shown(old)} → {_shown(new)}"


def _table(value: Any) -> Schema:
    return value if isinstance(value, Mapping) else {}


def _names(value: Any) -> set[str]:
    return {entry for entry in value if isinstance(entry, str)} if isinstance(value, list) else set()


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
