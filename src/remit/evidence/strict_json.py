"""JSON that two readers cannot take differently: read strictly, written in canonical form (RFC 8785)."""

from __future__ import annotations

import hashlib
import json
import re
from decimal import Decimal
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined] # typeshed lacks one
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
scan = _decoder.scan_once  # type: ignore[attr-defined] # typeshed lacks it
"""Read the JSON value that begins at a place of a text; return it, and where it ends."""
_FLAGS = (True, False, False)
"""Sort the members, skip none, and refuse NaN."""
_encode = c_make_encoder and c_make_encoder(None, None, encode_basestring, None, ":", ",", *_FLAGS)


def read_json(data: bytes, where: str) -> Any:
    """Read JSON strictly: UTF-8, no member twice, no NaN. Raise RejectedError."""
    try:
        return read_text(data.decode(), where)
    except UnicodeDecodeError as error:
        raise RejectedError("json_invalid", f"{where}: {error}") from error


def read_text(text: str, where: str) -> Any:
    """Read JSON in a text, as above."""
    try:
        value, end = scan(text, 0)
        return value if end == len(text) else _decoder.decode(text)
    except StopIteration:
        raise RejectedError("json_invalid", f"{where}: it does not begin as JSON") from None
    except (ValueError, RecursionError) as error:
        raise RejectedError("json_invalid", f"{where}: {error}") from error


def canonical(value: Any) -> bytes:
    """Return the canonical form of a JSON value (RFC 8785); integers keep all their digits."""
    text = _plain(value) if type(value) is dict else ""
    return (text or _text(value)).encode()


def digest(value: Any) -> str:
    """Return the digest of a JSON value's canonical form."""
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"


def _plain(value: dict[str, Any]) -> str:
    """Return the canonical form as Python's own encoder writes it; empty: it may write these otherwise."""
    try:
        text = "".join(_encode(value, 0)) if _encode is not None else ""
    except (ValueError, TypeError, RecursionError):
        return ""
    is_other = "." in text or "e+" in text or "e-" in text or not text.isascii()  # numbers, and the order of names
    return "" if is_other else text


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
