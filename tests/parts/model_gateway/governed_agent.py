"""An agent that, like `claude`, is told of an MCP server by `--mcp-config=` and of its own tools by `--tools=`.

    claude --mcp-config=JSON --tools= PROMPT

It makes each call that the model wants through the server, with the call's identifier, and one of its own tools where
`--tools=` is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from typing import Any


class Server:
    """The MCP server that the agent was told of."""

    def __init__(self, config: str) -> None:
        server = json.loads(config)["mcpServers"]["remit"]
        command = [server["command"], *server["args"]]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._count = 0
        client = {"name": "claude", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._count += 1
        self._send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        assert self._process.stdout is not None
        while True:
            message = json.loads(self._process.stdout.readline())
            if message.get("id") == self._count and "method" not in message:
                return message["result"]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


def main(words: list[str]) -> int:
    config = next((word.partition("=")[2] for word in words if word.startswith("--mcp-config=")), "")
    server = Server(config) if config else None
    offered = [f"mcp__remit__{name}" for name in server.tools] if server else []
    offered += [] if "--tools=" in words else ["write"]
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in offered]
    messages: list[dict[str, Any]] = [{"role": "user", "content": words[-1]}]
    while True:
        body = json.dumps({"model": "gpt-4o", "messages": messages, "tools": tools}).encode()
        headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "content-type": "application/json"}
        request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, headers)  # noqa: S310 - the gateway's
        with urllib.request.urlopen(request) as response:  # noqa: S310 - the same
            message = json.load(response)["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            break
        for call in message["tool_calls"]:
            name, given = call["function"]["name"], json.loads(call["function"]["arguments"])
            told = "written"
            if server is not None and name.startswith("mcp__remit__"):
                params = {"name": name.removeprefix("mcp__remit__"), "arguments": given}
                told = json.dumps(server.ask("tools/call", {**params, "_meta": {"claudecode/toolUseId": call["id"]}}))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})
    if server is not None:
        server.close()
    sys.stdout.write(f"{message['content']}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
