"""A server on stdio that answers a call of `say` with the bytes it is given, and then properly, under the same id.

In between it waits for its client to answer a ping: what it said has been read by then.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any, Final

SAY: Final = {"name": "say", "description": "Writes bytes.", "inputSchema": {"type": "object"}}
PROPER: Final = {"content": [{"type": "text", "text": "proper"}]}
FENCE: Final = "fence"


def main() -> None:
    """Answer until the end of input."""
    calls: list[dict[str, Any]] = []
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == FENCE and calls:
            write(answered(calls.pop(), result=PROPER))
        elif "id" in message and "method" in message:
            write(answer(message))
            if message["method"] == "tools/call":
                calls.append(message)
                write({"jsonrpc": "2.0", "id": FENCE, "method": "ping"})


def answer(message: dict[str, Any]) -> dict[str, Any] | bytes:
    """What is said at once to a request."""
    match message["method"]:
        case "initialize":
            version, info = message["params"]["protocolVersion"], {"name": "bytes", "version": "1"}
            capabilities: dict[str, Any] = {"tools": {}, "logging": {}}
            said = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
            return answered(message, result=said)
        case "tools/list":
            return answered(message, result={"tools": [SAY]})
        case "tools/call":
            params = message["params"]
            token = json.dumps((params.get("_meta") or {}).get("progressToken", 0)).encode()
            data = base64.b64decode(params["arguments"]["bytes"])
            return data.replace(b"@ID@", json.dumps(message["id"]).encode()).replace(b"@TOKEN@", token)
        case _:
            return answered(message, error={"code": -32601, "message": "Method not found"})


def answered(request: dict[str, Any], **said: Any) -> dict[str, Any]:
    """An answer."""
    return {"jsonrpc": "2.0", "id": request["id"], **said}


def write(message: dict[str, Any] | bytes) -> None:
    """Write a line."""
    sys.stdout.buffer.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
    sys.stdout.buffer.flush()


main()
