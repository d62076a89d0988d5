"""Defaults that a function tool sets and its schema does not declare: no approver of a call sees them.

They are made when the call runs (a factory, such as a clock), or hold what JSON cannot say, or a ready schema leaves
them out. Empty lists, dicts and sets are not counted: there is nothing in them to see.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import msgspec.inspect

from remit.tools.hints import hints_of
from remit.tools.meta import JsonSchema
from remit.tools.provider import CallContext

_EMPTY: Final = frozenset({list, dict, set, frozenset, tuple, bytearray})
"""Factories of nothing."""


def undeclared(function: Callable[..., Any], input_schema: JsonSchema | None) -> list[str]:
    """Return the places of such defaults: a parameter, or a field of the type of one (`job.at`).

    Raises SchemaError for hints that cannot be read.
    """
    hints = hints_of(function)
    declared = (input_schema or {}).get("properties", {})
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) is CallContext or name not in declared | hints:
            continue
        if parameter.default is not parameter.empty and "default" not in declared.get(name, {}):
            found.append(name)
        if name in declared and name in hints:
            found += [f"{name}.{place}" for place in _made(msgspec.inspect.type_info(hints[name]), ())]
    return found


def _made(kind: msgspec.inspect.Type, above: tuple[type, ...]) -> Iterator[str]:
    """Yield the fields below a type whose defaults its schema does not declare."""
    if isinstance(kind, msgspec.inspect.StructType | msgspec.inspect.DataclassType):
        if kind.cls in above:
            return
        for field in kind.fields:
            if field.default_factory is not msgspec.NODEFAULT and field.default_factory not in _EMPTY:
                yield field.name
            yield from (f"{field.name}.{place}" for place in _made(field.type, (*above, kind.cls)))
        return
    for name in ("type", "item_type", "value_type"):
        if isinstance(inner := getattr(kind, name, None), msgspec.inspect.Type):
            yield from _made(inner, above)
    for inner in (*getattr(kind, "types", ()), *getattr(kind, "item_types", ())):
        yield from _made(inner, above)
