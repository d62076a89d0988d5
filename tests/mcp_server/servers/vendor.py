"""An MCP server on stdio with methods and notifications of its own; it speaks the version that it is asked for.

vendor.py NUMBER    the first lists of tools, so many, are refused
"""

from __future__ import annotations

import json
import sys
from typing import Any

TOOLS = ("ask", "told", "order", "batch")
REFUSED = {"code": 7, "message": "not today", "data": {"until": [1]}}


class Vendor:
    """What it heard, and the calls that wait for the client's answer."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.asked: dict[str, Any] = {}
        self.lists = 0

    def run(self) -> None:
        """Answer until the end of input."""
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                request = self.asked.pop(message["id"])
                self.result(request, text(message.get("result") or message["error"]))
            elif "id" in message:
                self.answer(message, message["method"], message.get("params") or {})
            elif message["method"] not in {"notifications/initialized", "notifications/cancelled"}:
                self.heard.append([message["method"], message.get("params")])

    def answer(self, request: dict[str, Any], method: str, params: dict[str, Any]) -> None:
        """Answer a request."""
        match method:
            case "initialize":
                capabilities = {"tools": {}, "logging": {}, "acme": {"v": 1}, "experimental": {"acme/x": {}}}
                info = {"name": "vendor", "version": "1"}
                version = params["protocolVersion"]
                self.result(request, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
            case "tools/list":
                self.lists += 1
                if self.lists <= int(sys.argv[1]):
                    say({"jsonrpc": "2.0", "id": request["id"], "error": REFUSED})
                    return
                self.result(request, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
            case "tools/call":
                self.call(request, params["name"], params)
            case "acme/hello":
                self.result(request, {"params": params, "vendor": [1.5]})
            case _:
                say({"jsonrpc": "2.0", "id": request["id"], "error": REFUSED})

    def call(self, request: dict[str, Any], name: str, params: dict[str, Any]) -> None:
        """Do what a tool does."""
        match name:
            case "ask":
                self.asked["s1"] = request
                say({"jsonrpc": "2.0", "id": "s1", "method": params["arguments"]["method"], "params": {"q": 1}})
            case "told":
                for method in ("notifications/vendor/thing", "$/x", "notifications/elicitation/complete"):
                    say({"jsonrpc": "2.0", "method": method, "params": {"elicitationId": "e"}})
                self.result(request, text(self.heard))
            case "order":
                for each in range(1, 41):
                    progress = {"progressToken": params["_meta"]["progressToken"], "progress": 2**53 + each}
                    progress |= {"_meta": {"acme/n": each}} if each % 2 else {}
                    say({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
                    logged = {"level": "info", "data": each}
                    say({"jsonrpc": "2.0", "method": "notifications/message", "params": logged})
                    say({"jsonrpc": "2.0", "method": "notifications/vendor/n", "params": {"n": each}})
                self.result(request, text("done"))
            case _:
                logged = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
                say([logged, {"jsonrpc": "2.0", "id": request["id"], "result": text("batch")}])

    def result(self, request: dict[str, Any], result: Any) -> None:
        """Answer with a result."""
        say({"jsonrpc": "2.0", "id": request["id"], "result": result})


def text(value: Any) -> dict[str, Any]:
    """A result of a tool."""
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def say(message: Any) -> None:
    """Write a message."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


Vendor().run()
