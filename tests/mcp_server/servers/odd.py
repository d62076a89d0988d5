"""An MCP server on stdio that pays, and then answers oddly: `how` of the arguments says how.

odd.py FILE    each payment is a line of FILE
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

PAID = Path(sys.argv[1])
OK = [{"type": "text", "text": "ok"}]
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
RESULTS: dict[str, Any] = {
    "good": {"content": OK},
    "broken": {"content": OK, "structuredContent": {"id": 7}},
    "missing": {"content": OK},
    "deep": {"content": OK, "structuredContent": {"v": json.loads("[" * 300 + "]" * 300)}},
    "large": {"content": [{"type": "text", "text": "x" * 20_000_000}]},
    "failed": {"content": [{"type": "text", "text": "half done, then failed"}], "isError": True},
    "null": None,
    "text": "text",
}
LINES: dict[str, bytes] = {
    "nan": b'"result":{"content":[],"n":NaN}}',
    "huge": b'"result":{"content":[],"structuredContent":{"n":1E400}}}',
    "utf8": b'"result":{"content":[{"type":"text","text":"\xff"}]}}',
    "half": b'"result":{"content":[{"type":"text","text":"\\ud83d"}]}}',
    "deeper": b'"result":{"content":[{"type":"text","text":"ok"}],"structuredContent":{"v":'
    + b"[" * 5_000
    + b"]" * 5_000
    + b"}}}",
    "broken off": b'"result":{"content":[',
}


def main() -> None:
    """Answer until the end of input."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            sys.stdout.buffer.write(answer(message) + b"\n")
            sys.stdout.buffer.flush()


def answer(message: dict[str, Any]) -> bytes:
    """The answer to a request."""
    match message["method"]:
        case "initialize":
            info = {"name": "odd", "version": "1"}
            version = message["params"]["protocolVersion"]
            said: Any = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            plain = {"name": "pay", "inputSchema": {"type": "object"}}
            said = {"tools": [plain, {**plain, "name": "structured", "outputSchema": SCHEMA}]}
        case "tools/call":
            return paid(message["id"], message["params"]["arguments"]["how"])
        case _:
            return written(message["id"], error={"code": -32601, "message": "no"})
    return written(message["id"], result=said)


def paid(request: int, how: str) -> bytes:
    """Pay, and answer so."""
    with PAID.open("a") as file:
        file.write("paid\n")
    if how == "die":
        os._exit(1)
    if how in LINES:
        return b'{"jsonrpc":"2.0","id":%d,' % request + LINES[how]
    if how in RESULTS:
        return written(request, result=RESULTS[how])
    return written(request, error={"code": int(how), "message": "wait 3 s", "data": {"retryAfter": 3}})


def written(request: int, **said: Any) -> bytes:
    """A message as it travels."""
    return json.dumps({"jsonrpc": "2.0", "id": request, **said}).encode()


main()
