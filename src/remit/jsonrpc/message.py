"""The words of JSON-RPC 2.0 messages as they travel on a line; what a peer may write wrong is settled here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, RequestId

_encode: Final = msgspec.json.Encoder().encode
_DIGITS: Final = 18
"""Digits of a number that is an id; what has more is text (`int` refuses thousands of them)."""
_ID: Final = rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})\s*'
_HEAD: Final = re.compile(rb"\s*\{\s*" + _ID + rb',\s*"result"')
_TAIL: Final = re.compile(_ID + rb"\}\s*\Z")
_EDGE: Final = 200


def line_of(head: dict[str, Any], params: Mapping[str, Any] | None) -> bytes:
    """A message as a line, its end included. Raises ValueError for text that is no Unicode."""
    return _encode({**head, "params": params} if params else head) + b"\n"


def key_of(request_id: RequestId) -> RequestId:
    """What an id is compared by: a number that comes back as text is the same id."""
    if isinstance(request_id, str) and len(request_id) <= _DIGITS and request_id.isascii() and request_id.isdigit():
        return int(request_id)
    return request_id


def number(value: object) -> float | None:
    """A JSON number as a float; None for anything else, and for what no float can hold."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def error_of(error: dict[str, Any]) -> MCPError:
    """The peer's error, its parts made what they should be."""
    code, message = error.get("code"), error.get("message")
    return MCPError(
        code=code if isinstance(code, int) else INTERNAL_ERROR,
        message=message if isinstance(message, str) else "an error without a message",
        data=error.get("data"),
    )


def unreadable_answer(line: bytes) -> int | None:
    """The id that a line which cannot be decoded answers, as SDKs write answers: head or tail tell; None: it is none.

    Text that is not UTF-8, half of a surrogate pair, NaN or 10,000 brackets spoil an answer, and still somebody waits
    for it.
    """
    found = _HEAD.match(line[:_EDGE])
    if found is None and b'"result"' in line[:_EDGE]:
        found = _TAIL.search(line[-_EDGE:])
    return int(found[1]) if found is not None else None
