"""An MCP server without an SDK that asks for the client's roots whenever it may, in the era that its argument names.

Its tool `heard` gives what the client declared and which roots it gave, once it has given as many as are asked for.
With a second argument it lists no tools before the first answer.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MODERN = sys.argv[1:2] == ["modern"]
ROOTS_FIRST = len(sys.argv) > 2
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ANY: dict[str, Any] = {"type": "object"}
DECLARED: list[Any] = []
ROOTS: list[Any] = []
LATER: list[dict[str, Any]] = []
"""Requests that wait for roots."""


def send(**members: Any) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **members}) + "\n")
    sys.stdout.flush()


def is_due(message: dict[str, Any]) -> bool:
    """Whether a request can be answered by now."""
    if message["method"] == "tools/call":
        return len(ROOTS) >= int(message["params"]["arguments"].get("roots", 0))
    return not ROOTS_FIRST or message["method"] != "tools/list" or bool(ROOTS)


def answer(message: dict[str, Any]) -> None:
    """Answer a request."""
    params, result = message.get("params") or {}, dict[str, Any]()
    match message["method"]:
        case "initialize" if not MODERN:
            DECLARED.append(params["capabilities"])
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "asker", "version": "1"},
            }
        case "server/discover" if MODERN:
            result = {
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "asker", "version": "1"},
                "ttlMs": 0,
                "cacheScope": "private",
            }
        case "tools/list":
            result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if MODERN else {}
            result["tools"] = [{"name": "heard", "inputSchema": ANY}]
        case "tools/call":
            declared = [*DECLARED, *([params["_meta"][CAPABILITIES]] if MODERN else [])]
            text = json.dumps({"declared": declared, "roots": ROOTS})
            result = {"content": [{"type": "text", "text": text}], **({"resultType": "complete"} if MODERN else {})}
        case _:
            send(id=message["id"], error={"code": -32601, "message": "Method not found"})
            return
    send(id=message["id"], result=result)


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") in {"notifications/initialized", "notifications/roots/list_changed"}:
        send(id=f"roots {len(ROOTS)}", method="roots/list")
    elif "method" not in message:
        ROOTS.append(message.get("result", message.get("error")))
    elif "id" in message:
        LATER.append(message)
    for waiting in [each for each in LATER if is_due(each)]:
        LATER.remove(waiting)
        answer(waiting)
