"""The words of JSON-RPC 2.0 messages as they travel; what a peer may write wrong is settled here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from remit.jsonrpc.protocol import INTERNAL_ERROR, MCPError, RequestId
from remit.large import decode

CANCELLED: Final = "notifications/cancelled"
_encode: Final = msgspec.json.Encoder().encode
_DIGITS: Final = 18
"""Digits of a number that is an id; what has more is text (`int` refuses thousands of them)."""
_ID: Final = rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})\s*'
_HEAD: Final = re.compile(rb"\s*\{\s*" + _ID + rb',\s*"result"')
_TAIL: Final = re.compile(_ID + rb"\}\s*\Z")
_EDGE: Final = 200
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Message(NamedTuple):
    """A message on its way out, and what a wire may want to know of it."""

    body: bytes
    """Its JSON."""
    method: str = ""
    """Empty: it answers a request of the peer's."""
    request_id: RequestId | None = None
    """Of the request that it is, that it answers, or that it cancels."""
    headers: Mapping[str, str] = _NOTHING
    """Headers of HTTP beside it."""
    error_code: int | None = None
    """Of an answer that is an error."""


def request(
    request_id: RequestId, method: str, params: Mapping[str, Any] | None, headers: Mapping[str, str] = _NOTHING
) -> Message:
    """A request. Raises ValueError for text that is not Unicode."""
    return Message(_written({"id": request_id, "method": method}, params), method, request_id, headers)


def notification(
    method: str,
    params: Mapping[str, Any] | None,
    headers: Mapping[str, str] = _NOTHING,
    *,
    about: RequestId | None = None,
) -> Message:
    """A notification; a cancellation is `about` a request. Raises ValueError for text that is not Unicode."""
    return Message(_written({"method": method}, params), method, about, headers)


def result(request_id: RequestId, given: Mapping[str, Any]) -> Message:
    """The answer to a request. Raises ValueError for text that is not Unicode."""
    return Message(_written({"id": request_id, "result": given}, None), request_id=request_id)


def error(request_id: RequestId | None, given: Mapping[str, Any]) -> Message:
    """The answer to a failed or invalid request. Raises ValueError for text that is not Unicode."""
    written = _written({"id": request_id, "error": given}, None)
    return Message(written, request_id=request_id, error_code=given["code"])


def _written(head: dict[str, Any], params: Mapping[str, Any] | None) -> bytes:
    return _encode({"jsonrpc": "2.0", **head, "params": params} if params else {"jsonrpc": "2.0", **head})


def key_of(request_id: RequestId) -> RequestId:
    """Return what an id is compared by: a number that comes back as text is the same id."""
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


def error_of(told: dict[str, Any]) -> MCPError:
    """The peer's error, its parts made what they should be."""
    code, text = told.get("code"), told.get("message")
    return MCPError(
        code=code if isinstance(code, int) else INTERNAL_ERROR,
        message=text if isinstance(text, str) else "an error without a message",
        data=told.get("data"),
    )


def unreadable_answer(line: bytes) -> int | None:
    """The id in the head or tail of an answer, as SDKs write it, that cannot be decoded; None if neither has it.

    Text that is not UTF-8, half of a surrogate pair, NaN or 10,000 brackets spoil an answer, and still someone waits
    for it.
    """
    found = _HEAD.match(line[:_EDGE])
    if found is None and b'"result"' in line[:_EDGE]:
        found = _TAIL.search(line[-_EDGE:])
    return int(found[1]) if found is not None else None


def is_request(line: bytes) -> bool:
    """Return whether a message is a request, of whatever kind."""
    try:
        message = decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(message, dict) and isinstance(message.get("method"), str) and "id" in message
