"""An MCP server on stdio without an SDK, which answers with what the client asks it for. Needs only Python."""

from __future__ import annotations

import json
import sys
from typing import Any

OPEN = {"type": "object", "properties": {"result": {"type": "object"}, "error": {"type": "object"}}}
INFO = {
    "name": "full",
    "title": "Full Server",
    "version": "9.9",
    "description": "All of it.",
    "websiteUrl": "https://full.example",
    "icons": [{"src": "https://full.example/icon.png", "sizes": ["48x48"]}],
}
CAPABILITIES = {
    "tools": {},
    "prompts": {},
    "resources": {},
    "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}},
    "experimental": {"acme/beta": {"level": 2}},
}
TOOLS = [
    {"name": "say", "description": "Answer with this.", "inputSchema": OPEN},
    {"name": "hear", "description": "Give the _meta of the request.", "inputSchema": {"type": "object"}},
    {
        "name": "typed",
        "description": "Wants a number.",
        "inputSchema": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
    },
]


def called(params: dict[str, Any]) -> dict[str, Any]:
    """The result of a call, or its error."""
    args = params.get("arguments") or {}
    if params["name"] == "hear":
        return {"result": {"content": [{"type": "text", "text": json.dumps(params.get("_meta", {}))}]}}
    if params["name"] == "typed":
        return {"result": {"content": [{"type": "text", "text": json.dumps(args)}]}}
    return {"error": args["error"]} if "error" in args else {"result": args["result"]}


def answered(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The body of an answer."""
    if method == "initialize":
        said = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": INFO}
        return {"result": {**said, "instructions": "First read, then write."}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        return called(params)
    if method in ("prompts/list", "resources/list"):
        return {"result": {method.partition("/")[0]: []}}
    return {"error": {"code": -32601, "message": "unknown method " + method}}


def main() -> None:
    """Answer requests, one JSON object a line, until stdin is closed."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            body = answered(message["method"], message.get("params") or {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}) + "\n")
            sys.stdout.flush()


main()
