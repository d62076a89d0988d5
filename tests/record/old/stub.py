"""An MCP server of one tool, in bare JSON-RPC lines on stdio."""

from __future__ import annotations

import json
import sys
from typing import Any

VERSION = "2025-06-18"
TOOL = {
    "name": "echo",
    "description": "Say it again.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "annotations": {"readOnlyHint": True},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for a method that it does not know."""
    match method:
        case "initialize":
            info = {"name": "stub", "version": "1"}
            return {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            text = params["arguments"]["text"]
            return {"content": [{"type": "text", "text": text}], "isError": text == "fail"}
        case _:
            return {} if method == "ping" else None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params", {}))
    unknown = {"code": -32601, "message": "unknown method"}
    told = {"result": result} if result is not None else {"error": unknown}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **told}) + "\n")
    sys.stdout.flush()
