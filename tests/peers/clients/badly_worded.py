"""A server on stdio with a good tool and thirty badly worded ones. Needs only Python."""

from __future__ import annotations

import json
import sys
from typing import Any

GOOD: dict[str, Any] = {"name": "good", "description": "Greets.", "inputSchema": {"type": "object"}}
BAD: list[dict[str, Any]] = [
    {"title": 5},
    {"title": None},
    {"description": 5},
    {"description": ["a"]},
    {"description": None},
    {"annotations": "x"},
    {"annotations": {"readOnlyHint": "yes"}},
    {"annotations": {"title": 5}},
    {"icons": "x"},
    {"icons": [{"href": "x"}]},
    {"icons": [{"src": "https://a.example", "sizes": "48x48"}]},
    {"icons": [{"src": "https://a.example", "mimeType": 5}]},
    {"icons": [{"src": "https://a.example", "theme": "blue"}]},
    {"icons": [None]},
    {"_meta": []},
    {"_meta": "x"},
    {"execution": "x"},
    {"execution": {"taskSupport": "always"}},
    {"outputSchema": []},
    {"outputSchema": {"type": "array"}},
    {"outputSchema": {"type": "object", "properties": {"a": True}}},
    {"inputSchema": {"type": "object", "properties": {"a": True, "b": False}}},
    {"inputSchema": {"type": "object", "properties": {"a": None}}},
    {"inputSchema": {"type": "object", "required": "a"}},
    {"inputSchema": {"type": "array"}},
    {"inputSchema": None},
    {"inputSchema": "x"},
    {"name": 5},
    {"name": None},
    {"name": "has spaces and / slashes"},
]


def answered(method: str) -> dict[str, Any]:
    """The body of an answer."""
    if method == "initialize":
        info = {"name": "badly-worded", "version": "1"}
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list":
        tools = [{"name": f"bad_{place}", "inputSchema": {"type": "object"}} | bad for place, bad in enumerate(BAD)]
        return {"result": {"tools": [*tools[:15], GOOD, *tools[15:], "no object"]}}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": "hello"}]}}
    return {"error": {"code": -32601, "message": "unknown method " + method}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answered(message["method"])}), flush=True)
