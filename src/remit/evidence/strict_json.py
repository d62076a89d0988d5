"""JSON that two readers cannot take differently: read strictly, written in canonical form (RFC 8785)."""

from __future__ import annotations

import hashlib
import json
import re
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from remit.evidence.rejected import RejectedError

_POINT_FROM, _EXPONENT_FROM = 1e-6, 1e21
"""The sizes between which ECMAScript writes a number without an exponent."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member stands there twice")
    return members


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_NAMES = {None: "null", True: "true", False: "false"}
_decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse)
_scan = _decoder.scan_once  # type: ignore[attr-defined] # typeshed lacks it


def read_json(data: bytes, where: str) -> Any:
    """Read JSON strictly: UTF-8, no member twice, no NaN. Raise RejectedError."""
    try:
        return read_text(data.decode(), where)
    except UnicodeDecodeError as error:
        raise RejectedError("json_invalid", f"{where}: {error}") from error


def read_text(text: str, where: str) -> Any:
    """Read JSON in a text, as above."""
    try:
        value, end = _scan(text, 0)
        return value if end == len(text) else _decoder.decode(text)
    except StopIteration:
        raise RejectedError("json_invalid", f"{where}: it does not begin as JSON") from None
    except (ValueError, RecursionError) as error:
        raise RejectedError("json_invalid", f"{where}: {error}") from error


def canonical(value: Any) -> bytes:
    """Return the canonical form of a JSON value (RFC 8785); integers keep all their digits."""
    return _text(value).encode()


def digest(value: Any) -> str:
    """Return the digest of a JSON value's canonical form."""
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, dict):
        names = sorted(value, key=None if "".join(value).isascii() else _utf16)
        return f"{{{','.join([f'{encode_basestring(name)}:{_text(value[name])}' for name in names])}}}"
    return _NAMES[value] if value is None or isinstance(value, bool) else str(value)


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _number(value: float) -> str:
    """Write a number as ECMAScript does (RFC 8785, section 3.2.2.3)."""
    text = repr(value)
    if value == 0:
        return "0"
    if _POINT_FROM <= abs(value) < _EXPONENT_FROM:
        return format(Decimal(text), "f").removesuffix(".0")
    return re.sub(r"e([+-])0", r"e\1", text)
