"""An MCP server on stdio without an SDK, named by its argument: a tool with a page, prompts, resources, completion."""

from __future__ import annotations

import json
import sys
from typing import Any

NAME = sys.argv[1]
FIXED: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {
            "tools": {},
            "prompts": {},
            "resources": {"subscribe": True},
            "completions": {},
            "extensions": {"io.modelcontextprotocol/ui": {}},
        },
        "serverInfo": {"name": NAME, "version": "1"},
        "instructions": f"{NAME}: first read, then write.",
    },
    "tools/list": {
        "tools": [
            {
                "name": "show",
                "inputSchema": {"type": "object"},
                "_meta": {"ui": {"resourceUri": f"ui://{NAME}/page"}},
            }
        ]
    },
    "resources/list": {"resources": [{"uri": each, "name": each} for each in (f"memo://{NAME}", "memo://both")]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": f"page://{NAME}/{{n}}", "name": "page"}]},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None where there is no such thing."""
    uri, result = params.get("uri", ""), FIXED.get(method)
    match method:
        case "prompts/list" if params.get("cursor") is None:
            result = {"prompts": [{"name": "greet"}], "nextCursor": "2"}
        case "prompts/list":
            result = {"prompts": [{"name": "part__two"}]}
        case "prompts/get" if params["name"] in {"greet", "part__two"}:
            result = {"messages": [{"role": "user", "content": {"type": "text", "text": f"{NAME} {params['name']}"}}]}
        case "resources/read" if NAME in uri or uri == "memo://both":
            result = {"contents": [{"uri": uri, "text": f"{NAME} has {uri}"}]}
        case "completion/complete":
            result = {"completion": {"values": [NAME, json.dumps(params["ref"])]}}
        case _:
            pass
    return result


def send(**members: Any) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **members}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    found = answer(message["method"], message.get("params") or {})
    if found is None:
        send(id=message["id"], error={"code": -32002, "message": f"{NAME} has no such"})
        continue
    send(id=message["id"], result=found)
    if message["method"] == "resources/subscribe":
        send(method="notifications/resources/updated", params={"uri": message["params"]["uri"]})
