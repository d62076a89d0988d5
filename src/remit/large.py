"""Large values that others send: how to tell them, and to decode them without holding everything else up.

For each few thousand objects that are made Python's collector may look at all there are: a message of fifteen megabytes
takes seven times as long with it, and nothing else runs meanwhile.
"""

from __future__ import annotations

import gc
from typing import Any, Final

import msgspec

LARGE: Final = 256 * 1024
"""Bytes or characters from which a value is worked on in another thread."""
_PARTS: Final = 4_096
"""Members and items that weigh as much."""
_SCALARS: Final = frozenset({int, float, bool, type(None)})
_decode: Final = msgspec.json.Decoder().decode


def decode(data: bytes) -> Any:
    """JSON as Python's own values. Raises msgspec.DecodeError, UnicodeDecodeError or RecursionError."""
    if len(data) < LARGE or not gc.isenabled():
        return _decode(data)
    gc.disable()
    try:
        return _decode(data)
    finally:
        gc.enable()


def is_large(value: object) -> bool:
    """Whether a value is large; it looks at no more of it than that takes."""
    if type(value) in _SCALARS:
        return False
    waiting, parts, size = [value], 0, 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, str | bytes):
            size += len(one)
        elif isinstance(one, dict):
            parts += len(one)
            if parts <= _PARTS:
                waiting += one.values()
        elif isinstance(one, list | tuple | set | frozenset):
            parts += len(one)
            if parts <= _PARTS:
                waiting += one
        elif (names := _fields(type(one))) and parts <= _PARTS:
            parts += len(names)
            waiting += [getattr(one, name, None) for name in names]
        if size > LARGE or parts > _PARTS:
            return True
    return False


def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a Struct or a dataclass; of another type none."""
    return getattr(kind, "__struct_fields__", ()) or tuple(getattr(kind, "__dataclass_fields__", ()))
