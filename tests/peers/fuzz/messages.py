"""Messages at random: of a client to a server with the tool `echo`, and of a server to a call; half have a defect."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

VALUES: Final = (
    '"text"',
    '"\\u00e9 \U0001f600 \\ud83d\\ude00 \\\\ud83d"',
    "0",
    "-0.0",
    "1.0",
    "1e3",
    "0.1",
    "1E-400",
    "9007199254740993",
    "123456789012345678901234567890",
    "true",
    "null",
    "[]",
    "{}",
    '[1, [2, {"a": null}]]',
    '{"id": 5, "method": "x", "result": {}}',
    '"\\"id\\":5,"',
    '"\\u2028\\u0000\\u007f"',
    "[" * 40 + "]" * 40,
)
"""Values that every reader of JSON takes, as they travel."""
HALVES: Final = ('"a\\ud83d"', '"\\ude00b"', '"\\ud83d\\ud83d\\ude00"', '{"\\ud83d": 1}', '"\\uD83D \\uDE00"')
BYTES: Final = (b'"\xff"', b'"a\xc3"', b'"\xed\xa0\xbd"', b'{"\xe9": 1}', b'"\xf0\x9f"', b'"\xc0\x80"')
NUMBERS: Final = ("NaN", "-Infinity", "1E400", "[Infinity]", "-" + "9" * 5_000)
BROKEN: Final = ('"\\x"', '"\x01"', "oops", "01", "1.", "'a'", "undefined", '"\\u12"', "+1", ".5")
DEEP: Final = ("[" * 3_000 + "]" * 3_000, '{"a":' * 1_500 + "1" + "}" * 1_500)
METHODS: Final = ("ping", "tools/list", "resources/list", "acme/hello", "tools/call")


class Sent(NamedTuple):
    """A line, as it travels."""

    data: bytes
    kind: str
    """What it is, and what is wrong with it."""
    request_id: Any = None
    """The id under which it has to be answered; None if it need not be."""
    plain: bytes = b""
    """The same, spelled as SDKs spell it, with a number for its id; empty for what has a defect."""


def from_client(chance: Random, number: int) -> Sent:
    """A message of a client, whose id no other has."""
    written, request_id = _id(chance, number)
    method = chance.choice((*METHODS, "tools/call", "tools/call"))
    defect = chance.choice((*[""] * len(DEFECTS), *DEFECTS))
    if defect in WHOLE:
        return Sent(WHOLE[defect](chance, number), defect)
    params, kind = b'{"v": ' + _value(chance, defect) + b"}", method
    if method == "tools/call":
        tool = chance.choice(("echo", "echo", "nothing"))
        params, kind = b'{"name": "%s", "arguments": ' % tool.encode() + params + b"}", f"{method} {tool}"
    elif defect not in VALUED:
        params = chance.choice((b"", b"{}", params))
    parts = {"jsonrpc": b'"2.0"', "id": written.encode(), "method": json.dumps(method).encode(), "params": params}
    if defect in PARTS:
        part, values = PARTS[defect]
        parts[part] = chance.choice(values).encode()
    if defect == "notification":
        del parts["id"]
        parts["method"] = json.dumps(chance.choice(("notifications/acme", "notifications/cancelled", "x/y"))).encode()
    data = _joined(chance, parts)
    if defect == "cut":
        return Sent(data[: chance.randrange(1, len(data.rstrip()) - 1)], "cut")
    silent = defect in {"notification", "id: none"}
    usual = {**parts, "id": b"%d" % number}
    members = b", ".join(b'"%s": %s' % (name.encode(), value) for name, value in usual.items() if value)
    plain = b"" if defect else b"{" + members + b"}"
    return Sent(data, f"{kind} {defect}".strip(), None if silent else request_id, plain)


def from_server(chance: Random) -> Sent:
    """The lines that a server says to a call, before a proper answer; `@ID@` is the call's id, `@TOKEN@` its token."""
    defect = chance.choice((*[""] * len(ANSWERS), *ANSWERS))
    if defect in ANSWERS and defect not in VALUED:
        return Sent(chance.choice(ANSWERS[defect]), defect)
    value = _value(chance, defect)
    kind = chance.choice(("structured", "text", "error", "meta", "log", "progress", "block"))
    parts = {"jsonrpc": b'"2.0"', "id": b"@ID@"}
    text = value if value.startswith(b'"') else b'"ok"'
    block = b'{"type": "text", "text": ' + text + b"}"
    match kind:
        case "structured":
            parts["result"] = b'{"content": [], "structuredContent": {"v": ' + value + b"}}"
        case "text":
            parts["result"] = b'{"content": [' + block + b"]}"
        case "meta":
            parts["result"] = b'{"content": [' + block + b'], "_meta": {"acme/v": ' + value + b"}}"
        case "block":
            parts["result"] = b'{"content": [' + block + b'], "isError": true, "acme": ' + value + b"}"
        case "error":
            code = chance.choice((b"-32000", b"-32001", b"-32602", b"-32603", b"7", b"-32042"))
            parts["error"] = b'{"code": ' + code + b', "message": ' + text + b', "data": ' + value + b"}"
        case "log":
            parts = {"jsonrpc": b'"2.0"', "method": b'"notifications/message"'}
            parts["params"] = b'{"level": "info", "data": ' + value + b"}"
        case _:
            parts = {"jsonrpc": b'"2.0"', "method": b'"notifications/progress"'}
            done = chance.choice((b"1", b"0.5", b"2", b"9007199254740993"))
            parts["params"] = b'{"progressToken": @TOKEN@, "progress": ' + done + b', "message": ' + text + b"}"
    return Sent(_joined(chance, parts), f"{kind} {defect}".strip())


def _id(chance: Random, number: int) -> tuple[str, Any]:
    """An id as it travels, and its value."""
    forms: list[Callable[[int], str]] = [
        str,
        str,
        lambda n: json.dumps(f"id-{n}"),
        lambda n: json.dumps(str(n)),
        lambda n: f'"0{n}"',
        lambda n: f"{n}.0",
        lambda n: f"{n}e0",
        lambda n: f"-{n}",
        lambda n: json.dumps(f"\U0001f600 {n}"),
        lambda n: f'"\\u0041{n}"',
        lambda n: f"{n}.5",
    ]
    written = chance.choice(forms)(number)
    return written, json.loads(written)


def _value(chance: Random, defect: str) -> bytes:
    value = chance.choice(VALUED.get(defect, VALUES))
    return value if isinstance(value, bytes) else value.encode()


def _joined(chance: Random, parts: dict[str, bytes]) -> bytes:
    """The members of a message in any order, in any spelling."""
    members = [
        json.dumps(name).encode() + chance.choice((b":", b": ", b" :\t")) + value
        for name, value in parts.items()
        if value
    ]
    if chance.random() < 0.5:
        chance.shuffle(members)
    between = chance.choice((b",", b", ", b" ,"))
    before, after = chance.choice((*[b""] * 6, b" ", b"\xef\xbb\xbf")), chance.choice((b"", b"", b"\r", b" "))
    return before + b"{" + between.join(members) + b"}" + after


VALUED: Final[dict[str, tuple[str | bytes, ...]]] = {
    "half": HALVES,
    "utf-8": BYTES,
    "number": NUMBERS,
    "broken": BROKEN,
    "deep": DEEP,
}
"""Defects of a value."""
PARTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "id: none": ("id", ("null", "true", "{}", "[1]")),
    "method": ("method", ("5", "null", '""', '"' + "x" * 5_000 + '"', '"ping "')),
    "params": ("params", ("[1]", "null", '"text"', "5")),
    "jsonrpc": ("jsonrpc", ('"1.0"', "2.0", "null")),
}
"""Defects of a member, and its values."""
WHOLE: Final[dict[str, Callable[[Random, int], bytes]]] = {
    "junk": lambda chance, _: chance.choice(
        (b"Listening on stdio", b"", b" ", b"5", b"null", b'"x"', b"{}", b"[]", b"{", b"\x00\xff", b"]" * 99, b'"' * 99)
    ),
    "answer": lambda _, number: b'{"jsonrpc": "2.0", "id": %d, "result": {}}' % number,
    "batch": lambda _, number: b'[{"jsonrpc": "2.0", "id": "b%d", "method": "ping"}]' % number,
}
DEFECTS: Final = (*VALUED, *PARTS, *WHOLE, "cut", "notification")
_TOLD: Final = (
    b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": @TOKEN@, "progress": %d}}\n'
    b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": %d}}'
)
ANSWERS: Final[dict[str, tuple[bytes, ...]]] = {
    **dict.fromkeys(VALUED, ()),
    "shape": tuple(
        b'{"jsonrpc": "2.0", "id": @ID@, ' + rest + b"}"
        for rest in (
            b'"result": null',
            b'"result": 5',
            b'"result": "text"',
            b'"result": []',
            b'"result": {}',
            b'"result": {"content": "text"}',
            b'"result": {"content": [5]}',
            b'"result": {"content": null}',
            b'"result": {"content": [{"type": "text"}]}',
            b'"result": {"content": [{"type": "acme", "x": 1}]}',
            b'"result": {"content": [{"type": "image", "data": "?", "mimeType": "image/png"}]}',
            b'"result": {"content": [], "structuredContent": [1]}',
            b'"result": {"content": [], "isError": "yes"}',
            b'"error": {}',
            b'"error": "text"',
            b'"error": null',
            b'"error": {"code": "x", "message": 5}',
            b'"error": {"code": 1.5, "message": "m"}',
            b'"x": 1',
        )
    ),
    "other id": tuple(
        b'{"jsonrpc": "2.0", "id": %s, "result": {"content": [{"type": "text", "text": "stray"}]}}' % each
        for each in (b"987654", b'"x"', b"null", b"-1", b"[]", b"true")
    ),
    "same id": tuple(
        b'{"jsonrpc": "2.0", "id": %s, "result": {"content": [{"type": "text", "text": "first"}]}}' % each
        for each in (b"@ID@.0", b"@ID@e0", b'"@ID@"')
    ),
    "junk": (b"listening", b"", b"{", b"[]", b"null", b"\xff", b"\x00", b'{"jsonrpc": "2.0"}', b"[[[", b'"'),
    "cut": (
        b'{"jsonrpc": "2.0", "id": @ID@, "result": {"content": [',
        b'{"result": {"content": []}, "jsonrpc": "2.0", "id": @ID@, "x',
        b'{"jsonrpc": "2.0", "id": @ID@, "error": {"code": 5',
    ),
    "twice": (b'{"jsonrpc": "2.0", "id": @ID@, "result": {"content": []}}\n' * 2,),
    "batch": (b'[{"jsonrpc": "2.0", "id": @ID@, "result": {"content": []}}]',),
    "vendor": (
        b'{"jsonrpc": "2.0", "method": "notifications/acme", "params": {"v": 1}}',
        b'{"jsonrpc": "2.0", "method": "$/x"}',
    ),
    "request": (
        b'{"jsonrpc": "2.0", "id": "s1", "method": "acme/ask", "params": {}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "roots/list"}',
        b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}',
    ),
    "order": (b"\n".join(_TOLD % (each, each) for each in range(1, 20)),),
}
"""Defects of what a server says, and examples of it."""
