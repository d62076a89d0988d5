"""The JSON of orders and results, spelled as protobuf spells it: snake_case is written, camelCase is read too. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeVar

import msgspec

from remit.codes import Code
from remit.errors import UsageError

T = TypeVar("T", bound=msgspec.Struct)

MAX_DOCUMENT: Final = 1_000_000
"""Bytes of an order or a result."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def write_document(document: msgspec.Struct) -> bytes:
    """Return the JSON of an order or a result, for people too."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def read_document(data: bytes, kind: type[T], what: str, code: Code) -> T:
    """Read JSON into a struct; unknown fields are left aside. Raise UsageError with this code."""
    if len(data) > MAX_DOCUMENT:
        raise UsageError(f"the {what} has {len(data):,} bytes; {MAX_DOCUMENT:,} are the most", code=code)
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_object)
        return convert(value, kind)
    except (ValueError, RecursionError) as error:  # msgspec.ValidationError is a ValueError
        raise UsageError(f"the {what} cannot be read: {error}", code=code, remedy="See docs/work.md.") from error


def convert(value: Any, kind: type[T]) -> T:
    """Make a struct of plain values. Raise msgspec.ValidationError."""
    return msgspec.convert(value, kind)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = [(_HUMP.sub("_", name).lower(), value) for name, value in pairs]
    names = [name for name, _ in named]
    if len(set(names)) != len(names):
        raise ValueError("a field occurs twice")
    return {name: value for name, value in named if value is not None}
