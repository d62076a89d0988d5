"""Large values that others send: how to tell them, and to decode them without holding everything else up.

For each few thousand objects that are made Python's collector may look at all there are: a message of fifteen megabytes
takes seven times as long with it, and nothing else runs meanwhile.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Final

import msgspec

LARGE: Final = 256 * 1024
"""Bytes or characters from which a value is worked on in another thread."""
MAX_VALUES: Final = 100_000
"""Members and items of a request: to copy, hash, check and record each takes longer than its bytes do."""
_PARTS: Final = 4_096
"""Members and items that weigh as much as LARGE."""
_FEW, _SHORT = 16, 4_096
"""So many texts of so many characters are not large together."""
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
    """Return whether a value is large; it looks at no more of it than that takes."""
    if type(value) in _SCALARS:
        return False
    if type(value) is dict and len(value) <= _FEW:  # as most arguments and results are
        for item in value.values():
            if type(item) not in _SCALARS and (type(item) is not str or len(item) > _SHORT):
                return _exceeds(value, _PARTS, LARGE)
        return False
    return _exceeds(value, _PARTS, LARGE)


def has_too_many_values(data: bytes, value: object) -> bool:
    """Return whether what was decoded from these bytes has more than MAX_VALUES members and items."""
    return len(data) > 2 * MAX_VALUES and _exceeds(value, MAX_VALUES, sys.maxsize)


def _exceeds(value: object, most: int, most_size: int) -> bool:
    if type(value) in _SCALARS:
        return False
    waiting, parts, size = [value], 0, 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, str | bytes):
            size += len(item)
        elif isinstance(item, dict):
            parts += len(item)
            if parts <= most:
                waiting += item.values()
        elif isinstance(item, list | tuple | set | frozenset):
            parts += len(item)
            if parts <= most:
                waiting += item
        elif (names := _fields(type(item))) and parts <= most:
            parts += len(names)
            waiting += [getattr(item, name, None) for name in names]
        if size > most_size or parts > most:
            return True
    return False


def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a Struct or a dataclass; of another type none."""
    return getattr(kind, "__struct_fields__", ()) or tuple(getattr(kind, "__dataclass_fields__", ()))
