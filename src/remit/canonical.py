"""RFC 8785 (JSON Canonicalization Scheme) bytes, and the SHA-256 of them: the only place that hashes JSON.

msgspec writes the same bytes as RFC 8785 except for some numbers, for the order of keys outside ASCII, and for types
that are not JSON's. A scan looks for exactly those: where it finds none, msgspec encodes; otherwise the `rfc8785`
package writes each part, after a second, slower look that can say where a value without a canonical form sits.

RFC 8785 knows no integer beyond ±(2^53 - 1). Here it has its exact decimal digits, as any other integer.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from remit.errors import NotCanonicalError

MAX_DEPTH: Final = 200
"""Objects and arrays that may lie within one another."""
MAX_INT: Final = 2**53 - 1
"""The largest integer a JSON reader must keep exactly (RFC 7493, section 2.2, which RFC 8785 rests on)."""
MAX_DIGITS: Final = 4_300
"""Decimal digits of an integer: what Python writes and reads (`sys.get_int_max_str_digits`)."""
BEYOND: Final = 10**MAX_DIGITS
"""The first integer that is too long."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_to_json: Final = msgspec.json.Encoder().encode
_FINITE: Final = "Use None or a string."

# From here on a float that has a fraction (so it is below MAX_INT) is written alike: same digits, no exponent.
_FLOAT_FROM: Final = 1e-5


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a JSON value: dict with str keys, list, tuple (as an array), str, int, float, bool, None.

    A subclass of one of these counts as its base. Raises NotCanonicalError, which names the place, for anything else,
    for NaN and infinities, integers of more than 4,300 digits, lone surrogates, and more than 200 levels.
    """
    try:
        if _is_plain(value, MAX_DEPTH) if type(value) is dict else _is_plain((value,), MAX_DEPTH + 1):
            return _encode(value)
    except UnicodeEncodeError:
        pass  # a lone surrogate: found again below, with its place
    fault = _fault(value, MAX_DEPTH)
    if fault is not None:
        raise NotCanonicalError(f"{fault.path} {fault.problem}", remedy=fault.remedy)
    return _written(value)


def as_json(value: Any) -> bytes:
    """A value as JSON that holds all of it: a NaN or an infinity is refused, where encoders make null of it.

    Objects are encoded as msgspec does. Raises NotCanonicalError, which names the place, or as the encoder does.
    """
    encoded = _to_json(value)
    if b"null" in encoded and value is not None and (path := not_finite(msgspec.to_builtins(value))):
        raise NotCanonicalError(f"{path} is NaN or infinite", remedy=_FINITE)
    return encoded


def not_finite(value: Any) -> str:
    """The JSONPath of the first NaN or infinity within a JSON value; empty if there is none."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else "$"
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple):
        parts = enumerate(value)
    for step, item in parts:
        if path := not_finite(item):
            return "$" + _step_text(step) + path[1:]
    return ""


def sha256(data: bytes) -> str:
    """The digest of bytes, as `sha256:` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """The digest of a JSON value's canonical bytes. Raises NotCanonicalError."""
    return sha256(canonical(value))


def _is_plain(container: Any, levels: int) -> bool:  # noqa: C901 - one flat loop: calls would double its cost
    """Say whether msgspec encodes all within this exact dict, list or tuple as RFC 8785 does; False is always safe."""
    if levels == 0:
        return False
    items = container
    if type(container) is dict:
        for key in container:
            if type(key) is not str or not key.isascii():
                return False
        items = container.values()
    for item in items:
        kind = type(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int:
            if not -BEYOND < item < BEYOND:
                return False
        elif kind is dict or kind is list or kind is tuple:
            if not _is_plain(item, levels - 1):
                return False
        elif kind is not float or not _FLOAT_FROM <= abs(item) < MAX_INT or item.is_integer():
            return False
    return True


def _written(value: Any) -> bytes:
    """The canonical bytes of a value without a fault."""
    import rfc8785  # noqa: PLC0415 - few values need it, and every start would pay for it

    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return b"{" + b",".join([rfc8785.dumps(key) + b":" + _written(item) for key, item in members]) + b"}"
    if isinstance(value, list | tuple):
        return b"[" + b",".join([_written(item) for item in value]) + b"]"
    if isinstance(value, int) and not -MAX_INT <= value <= MAX_INT:
        return str(int(value)).encode()
    return rfc8785.dumps(value)


class _Fault(NamedTuple):
    """Why a value has no canonical form, and where."""

    problem: str
    remedy: str
    steps: tuple[str | int, ...] = ()
    """From the offender up to the root."""

    def under(self, step: str | int) -> _Fault:
        """The same fault seen from one level further out."""
        return self._replace(steps=(*self.steps, step))

    @property
    def path(self) -> str:
        """A JSONPath (RFC 9535) to the offender, such as `$.items[3].price`."""
        return "$" + "".join(_step_text(step) for step in reversed(self.steps))


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() and step.isascii() else f"[{step!a}]"


def _fault(value: Any, levels: int) -> _Fault | None:
    """The first fault in a value; None where `rfc8785` can encode it."""
    if value is None:
        return None
    if isinstance(value, str):
        return _string_fault(value)
    if isinstance(value, int | float):
        return _number_fault(value)
    if not isinstance(value, dict | list | tuple):
        name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        return _Fault(f"is a {name}, which JSON cannot hold", "Use dict, list, str, int, float, bool or None.")
    if levels == 0:
        return _Fault(
            f"is more than {MAX_DEPTH} levels deep", "Flatten the value, or check whether it contains itself."
        )
    return _object_fault(value, levels) if isinstance(value, dict) else _array_fault(value, levels)


def _string_fault(text: str) -> _Fault | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _Fault("contains a lone surrogate, which UTF-8 cannot hold", "Decode the text properly or replace it.")
    return None


def _number_fault(number: float) -> _Fault | None:
    if not isinstance(number, int):
        return None if math.isfinite(number) else _Fault("is NaN or infinite", _FINITE)
    if -BEYOND < number < BEYOND:
        return None
    return _Fault(f"is an integer of more than {MAX_DIGITS} digits", "Use a string.")


def _object_fault(members: dict[Any, Any], levels: int) -> _Fault | None:
    for key, item in members.items():
        if not isinstance(key, str):
            return _Fault(f"has a key that is a {type(key).__name__}, not a string", "Use strings as keys.")
        if fault := _string_fault(key):
            return fault.under(key)
        if fault := _fault(item, levels - 1):
            return fault.under(key)
    return None


def _array_fault(items: list[Any] | tuple[Any, ...], levels: int) -> _Fault | None:
    for index, item in enumerate(items):
        if fault := _fault(item, levels - 1):
            return fault.under(index)
    return None
