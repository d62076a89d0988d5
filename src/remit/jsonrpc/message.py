"""The words of JSON-RPC 2.0 messages as they travel; what a peer may write wrong is settled here."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec

from remit.jsonrpc.protocol import INTERNAL_ERROR, MCPError, RequestId, as_request_id
from remit.large import decode
from remit.regex import regex

CANCELLED: Final = "notifications/cancelled"
PROGRESS: Final = "notifications/progress"
LEVELS: Final = 64
"""The depth to which a message is read that is too deep as a whole: what every reader of JSON follows."""
REPAIRED: Final = "dev.remit/repaired"
"""Key of `_meta`, of a result or of a call's parameters, under which a reader tells what `read` has repaired."""
REPAIRS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "half_pair": "half of a surrogate pair became U+FFFD",
        "not_utf8": "a byte outside of UTF-8 became U+FFFD",
        "not_escape": "a backslash that begins no escape became U+FFFD",
        "not_json": "a word or number that JSON does not have became null",
        "too_deep": f"what lies below level {LEVELS - 2} became null, for a record has 200",
    }
)
"""The effect of each kind of repair on one place of a value."""
_encode: Final = msgspec.json.Encoder().encode
_TOKENS: Final = 2_000_000
"""Texts and brackets of a message up to which it is repaired: that takes half a second."""
_HALF: Final = regex(
    r"(?<!\\)(\\++)u(?:[dD][89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|[dD][c-fC-F][0-9a-fA-F]{2})"
)
"""Escapes of surrogates: pairs, and halves that stand alone."""
_TOKEN: Final = regex(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]|[^"\[\]{}]++', re.DOTALL)
"""A text (the last may have no end), a bracket, or what stands between."""
_WORD: Final = regex(r"[^\s,:]++")
_BAD: Final = regex(r'[\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_ID: Final = regex(r'"id"\s*:\s*("(?:[^"\\]++|\\.)*+"|-?\d[\d.eE+-]*+)\s*[,}]')
_NUMBER: Final = regex(r"[1-9]\d{0,17}", re.ASCII)
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class RpcMessage(msgspec.Struct, frozen=True):
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
) -> RpcMessage:
    """A request. Raises ValueError for text that is not Unicode."""
    return RpcMessage(_written({"id": request_id, "method": method}, params), method, request_id, headers)


def notification(
    method: str,
    params: Mapping[str, Any] | None,
    headers: Mapping[str, str] = _NOTHING,
    *,
    about: RequestId | None = None,
) -> RpcMessage:
    """A notification; a cancellation is `about` a request. Raises ValueError for text that is not Unicode."""
    return RpcMessage(_written({"method": method}, params), method, about, headers)


def result(request_id: RequestId, value: Mapping[str, Any]) -> RpcMessage:
    """The answer to a request. Raises ValueError for text that is not Unicode."""
    return RpcMessage(_written({"id": request_id, "result": value}, None), request_id=request_id)


def error(request_id: RequestId | None, problem: Mapping[str, Any]) -> RpcMessage:
    """The answer to a failed or invalid request. Raises ValueError for text that is not Unicode."""
    written = _written({"id": request_id, "error": problem}, None)
    return RpcMessage(written, request_id=request_id, error_code=problem["code"])


def _written(head: dict[str, Any], params: Mapping[str, Any] | None) -> bytes:
    return _encode({"jsonrpc": "2.0", **head, "params": params} if params else {"jsonrpc": "2.0", **head})


def own_id(request_id: RequestId, waiting: Collection[RequestId]) -> RequestId:
    """Return the id of the request of ours that is meant: a number that comes back as text is the same, as in SDKs."""
    digits = isinstance(request_id, str) and request_id not in waiting and _NUMBER.fullmatch(request_id)
    return int(request_id) if digits else request_id


def number(value: object) -> float | None:
    """A JSON number as it came; None for anything else, and for what no float can hold."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        float(value)
    except OverflowError:
        return None
    return value


def error_of(problem: dict[str, Any]) -> MCPError:
    """The peer's error, its parts made what they should be."""
    code, text = problem.get("code"), problem.get("message")
    return MCPError(
        code=code if isinstance(code, int) else INTERNAL_ERROR,
        message=text if isinstance(text, str) else "an error without a message",
        data=problem.get("data"),
    )


class UnreadableMessageError(ValueError):
    """A message that cannot be read, with its id where that can be, and whether it is an answer."""

    def __init__(self, reason: str, request_id: RequestId | None, *, is_answer: bool) -> None:
        super().__init__(reason)
        self.request_id = request_id
        self.is_answer = is_answer


def read(body: bytes) -> Any:
    """A message, where a value that cannot be read costs that value alone. Raises UnreadableError.

    Text that is not Unicode gets U+FFFD, as by `toWellFormed`. In what is not a request, a word outside of JSON, or a
    number that nothing can hold (NaN, 1E400) is null, as by JSON.stringify, and so is what lies deeper than LEVELS; a
    request that asks for something else than it says is refused. A result and a call say under REPAIRED what was.
    """
    body = body.removeprefix(BOM_UTF8)  # which a reader of JSON may skip (RFC 8259, section 8.1)
    repairs: Counter[str] = Counter()
    try:
        message = decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        message = _repaired(body, repairs)
    for each in _all(message):
        if isinstance(each, dict):
            _note(each, repairs)
    return message


def _repaired(body: bytes, repairs: Counter[str]) -> Any:
    """The message with text that is Unicode, or what can be read of it. Raises UnreadableError."""
    decoded = body.decode(errors="replace")
    text = _HALF.sub(_paired, decoded)
    repairs["not_utf8"] += decoded.count("\ufffd") - body.count("\ufffd".encode())
    repairs["half_pair"] += text.count(r"\ufffd") - decoded.count(r"\ufffd")
    try:
        return decode(text.encode())
    except (msgspec.DecodeError, RecursionError) as error:
        return _mended(text, str(error), repairs)


def _note(message: dict[str, Any], repairs: Counter[str]) -> None:
    """Say in a result, or in the parameters of a call, what was repaired; no peer says so of its own."""
    part = message.get("params") if message.get("method") == "tools/call" else message.get("result")
    if not isinstance(part, dict) or not isinstance(meta := part.get("_meta", {}), dict):
        return
    meta.pop(REPAIRED, None)
    if counts := {kind: number for kind, number in repairs.items() if number}:
        part["_meta"] = {**meta, REPAIRED: counts}


def _paired(match: re.Match[str]) -> str:
    """An escape of a surrogate, with U+FFFD for a half without its other half."""
    slashes, low = match.groups()
    if len(slashes) % 2 == 0:  # the last of them is a character, and begins no escape
        return match[0] if low is None else match[0].removesuffix(low) + r"\ufffd"
    return match[0] if low is not None else slashes[:-1] + r"\ufffd"


def _mended(text: str, reason: str, repairs: Counter[str]) -> Any:
    """The message without what cannot be read. Raises UnreadableError, for a request always."""
    if sum(map(text.count, '"[{')) > _TOKENS:
        raise UnreadableMessageError(reason, None, is_answer=False)
    pieces: list[str] = []
    top: list[str] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        part = match[0]
        opens, closes = part in "[{", part in "]}"
        depth -= closes
        if depth < LEVELS or (depth == LEVELS and not (opens or closes)):
            pieces.append(_piece(part, repairs))
        elif depth == LEVELS and opens:
            repairs["too_deep"] += 1
            pieces.append("null")
        if depth == 1:
            top.append(part)
        depth += opens
    members = "".join(top) + "}" * (depth == 0)
    id_match = _ID.search(members) if '"jsonrpc"' in members else None
    request_id = as_request_id(read(id_match[1].encode())) if id_match is not None else None
    is_answer = '"method"' not in members and ('"result"' in members or '"error"' in members)
    try:
        message = decode("".join(pieces).encode()) if len(pieces) > 1 else None
    except (msgspec.DecodeError, RecursionError):
        message = None
    if message is None:
        raise UnreadableMessageError(reason, request_id, is_answer=is_answer)
    if any(isinstance(each, dict) and {"id", "method"} <= each.keys() for each in _all(message)):
        raise UnreadableMessageError(reason, request_id, is_answer=False)
    return message


def _all(message: Any) -> list[Any]:
    """The messages of a batch, or the one."""
    return message if isinstance(message, list) else [message]


def _piece(part: str, repairs: Counter[str]) -> str:
    if part[0] == '"':
        text = _BAD.sub(_escaped, part)
        repairs["not_escape"] += text.count("\ufffd") - part.count("\ufffd")
        return text
    if part in "[]{}":
        return part
    words = _WORD.sub(_known, part)
    repairs["not_json"] += words.count("null") - part.count("null")
    return words


def _escaped(match: re.Match[str]) -> str:
    """A character of a text: a control character as an escape, a backslash that begins none as U+FFFD."""
    char = match[0]
    return f"\\u{ord(char):04x}" if char < " " else "\ufffd" if char == "\\" else char


def _known(match: re.Match[str]) -> str:
    try:
        decode(match[0].encode())
    except msgspec.DecodeError:
        return "null"
    return match[0]


def is_request(line: bytes) -> bool:
    """Return whether a message is a request, of whatever kind."""
    try:
        message = read(line)
    except UnreadableMessageError:
        return False
    return isinstance(message, dict) and isinstance(message.get("method"), str) and "id" in message


class Transport(Protocol):
    """Takes messages to the peer."""

    def send(self, message: RpcMessage) -> None:
        """Take a message; never fails, never waits."""
        ...

    async def drained(self) -> None:
        """Wait while the other side is too slow to take more."""
        ...
