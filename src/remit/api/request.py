"""From what a client sent to what a handler takes: within caps, decoded strictly, refused in words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from remit.codes import Code
from remit.http.problem import Problem
from remit.large import MAX_VALUES, has_too_many_values
from remit.redact import line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive

    from remit.api.route import Route

MAX_BODY: Final = 8 * 1024 * 1024
"""Bytes of a request's body."""
MAX_QUERY: Final = 8_192
MAX_KEY: Final = 255
BODY_S: Final = 20.0
"""Seconds that a body may take to arrive."""
_JSON: Final = "application/json"


async def body_of(route: Route, headers: Mapping[str, str], receive: Receive, seconds: float = BODY_S) -> Any:
    """The body as the route's type. Raise Problem if it is too large, too slow, not JSON or of another form."""
    if route.body is None:
        return None
    if route.optional and _is_empty(headers):
        return route.body()
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _JSON:
        raise Problem(Code.MEDIA_TYPE_UNSUPPORTED, f"Send {_JSON}.")
    data = await bytes_of(headers, receive, seconds)
    try:
        body = msgspec.json.decode(data, type=route.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(Code.INVALID_INPUT, f"The body cannot be read: {line(str(error))}") from error
    if has_too_many_values(data, body):
        raise Problem(Code.REQUEST_TOO_LARGE, f"A body has at most {MAX_VALUES} members and items.")
    return body


def _is_empty(headers: Mapping[str, str]) -> bool:
    """Return whether a request comes without a body."""
    return "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"


async def bytes_of(
    headers: Mapping[str, str], receive: Receive, seconds: float = BODY_S, most: int = MAX_BODY
) -> bytes:
    """The body as it comes. Raise Problem if it is too large or too slow."""
    try:
        async with asyncio.timeout(seconds):
            return await _read(headers, receive, most)
    except TimeoutError:
        raise Problem(Code.BODY_TIMEOUT, f"The body did not arrive within {seconds:g} s.") from None


def query_of(kind: type[msgspec.Struct], raw: bytes) -> Any:
    """The query as its type; a name that may come several times becomes a list. Raise Problem."""
    if len(raw) > MAX_QUERY:
        raise Problem(Code.INVALID_INPUT, f"The query is longer than {MAX_QUERY} bytes.")
    return pairs_of(raw, kind, "The query")


def pairs_of(raw: bytes, kind: type[msgspec.Struct], what: str, most: int = 100) -> Any:
    """At most so many names and values, as a query and a form have them, as a type. Raise Problem.

    `what` they are begins a refusal.
    """
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=most)
    except (ValueError, UnicodeDecodeError) as error:
        raise Problem(Code.INVALID_INPUT, f"{what} cannot be read: {line(str(error))}") from error
    fields = {field.encode_name: _is_list(field.type) for field in msgspec.structs.fields(kind)}
    given: dict[str, Any] = {}
    for name, value in pairs:
        if fields.get(name):
            given.setdefault(name, []).append(value)
        elif name in given:
            raise Problem(Code.INVALID_INPUT, f"{what} names {line(name)!r} twice.")
        else:
            given[name] = value
    unknown = set(given) - set(fields)
    if unknown:
        raise Problem(Code.INVALID_INPUT, f"{what} has unknown names: {line(', '.join(sorted(unknown)))}")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(Code.INVALID_INPUT, f"{what}: {line(str(error))}") from error


def key_of(route: Route, headers: Mapping[str, str]) -> str:
    """The Idempotency-Key of a request that starts or sends something; empty without one. Raise Problem."""
    key = headers.get("idempotency-key", "")
    if key and not route.starts:
        return ""
    if len(key) > MAX_KEY or not key.isprintable():
        raise Problem(Code.INVALID_INPUT, f"An Idempotency-Key has at most {MAX_KEY} printable characters.")
    return key


def path_of(route: Route, segments: list[str]) -> dict[str, str]:
    """Return what stands in the braces of the route's path."""
    given = zip(route.path.split("/")[1:], segments, strict=True)
    return {name[1:-1]: unquote(value) for name, value in given if name.startswith("{")}


async def _read(headers: Mapping[str, str], receive: Receive, most: int) -> bytes:
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(Code.INTERRUPTED, "The client left before its body had arrived.")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _too_large(most: int) -> Problem:
    return Problem(Code.REQUEST_TOO_LARGE, f"A body has at most {most} bytes.")


def _is_list(hint: Any) -> bool:
    return getattr(hint, "__origin__", hint) in {list, tuple}
