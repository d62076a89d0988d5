"""An MCP server that does what a test says: it reports to a socket of the test, and takes orders from there.

`python -I -S puppet.py PORT PLAN`, where PLAN is JSON: `tools` (raw definitions), `eras` (`legacy`, `modern`), `mute`
(methods that are not answered until an order says so), `results` (raw results by tool), `orders` (carried out first),
`toolless` (offers prompts alone), `refused` (errors by method, until an order takes them), `knows` (the only versions),
`greeting` (what it says of itself).
It speaks bare JSON-RPC lines and starts in the time Python takes.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import signal
import socket
import subprocess
import sys

TYPE_CHECKING = False  # typing itself would double the time to start
if TYPE_CHECKING:
    from typing import Any

MODERN = "2026-07-28"


class Puppet:
    def __init__(self, port: int, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.tools = plan.get("tools", [])
        self.eras = plan.get("eras", ["legacy", "modern"])
        self.mute = set(plan.get("mute", []))
        self.unanswered: list[dict[str, Any]] = []
        self.lines: dict[str, bytes] = {}
        self.control = socket.create_connection(("127.0.0.1", port))
        self.reading = selectors.DefaultSelector()
        self.reading.register(0, selectors.EVENT_READ, self.heard)
        self.reading.register(self.control, selectors.EVENT_READ, self.ordered)

    def report(self, **what: Any) -> None:
        self.control.sendall(json.dumps({"pid": os.getpid(), **what}).encode() + b"\n")

    def run(self) -> None:
        for order in self.plan.get("orders", []):
            self.obey(order)
        self.report(started={"env": dict(os.environ), "cwd": os.getcwd()})  # noqa: PTH109 - pathlib takes long to import
        while True:
            for key, _ in self.reading.select():
                key.data()

    def cut(self, source: str, data: bytes) -> list[dict[str, Any]]:
        *lines, self.lines[source] = (self.lines.get(source, b"") + data).split(b"\n")
        return [json.loads(line) for line in lines if line.strip()]

    def heard(self) -> None:
        data = os.read(0, 1 << 20)
        if not data:
            if self.plan.get("stays"):
                self.reading.unregister(0)
                self.report(eof=True)
                return
            os._exit(0)
        for message in self.cut("stdin", data):
            self.report(message=message)
            if "id" in message and "method" in message:
                self.answer(message)

    def ordered(self) -> None:
        data = self.control.recv(1 << 20)
        if not data:
            os._exit(0)
        for order in self.cut("control", data):
            self.obey(order)

    def obey(self, order: dict[str, Any]) -> None:
        ((what, value),) = order.items()
        orders: dict[str, Any] = {
            "big": self.do_big,
            "changed": self.do_changed,
            "child": self.do_child,
            "close": self.do_close,
            "exit": os._exit,
            "ignore": lambda _: signal.signal(signal.SIGTERM, signal.SIG_IGN),
            "many": self.do_many,
            "mute": self.mute.add,
            "accept": self.do_accept,
            "raw": lambda text: self.raw(base64.b64decode(text)),
            "stderr": lambda text: os.write(2, text.encode() + b"\n"),
            "tools": self.do_tools,
            "unmute": self.do_unmute,
        }
        orders[what](value)

    # --- orders

    def do_big(self, size: int) -> None:
        self.raw(b'{"jsonrpc":"2.0","method":"notifications/big","params":{"x":"' + b"x" * size + b'"}}\n')

    def do_child(self, sessions: int) -> None:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"],
            start_new_session=sessions > 1,
        )
        self.report(child=child.pid)

    def do_close(self, fd: int) -> None:
        if fd == 0:
            self.reading.unregister(0)
        os.close(fd)

    def do_tools(self, tools: list[Any]) -> None:
        self.tools = tools

    def do_unmute(self, method: str) -> None:
        self.mute.discard(method)
        waiting, self.unanswered = self.unanswered, []
        for message in waiting:
            self.answer(message)

    def do_accept(self, method: str) -> None:
        self.report(accepted=self.plan["refused"].pop(method))

    def do_many(self, number: int) -> None:
        self.tools = [{"name": f"t{each}", "inputSchema": {"type": "object"}} for each in range(number)]

    def do_changed(self, times: int) -> None:
        self.raw(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n' * times)

    # --- answers

    def raw(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def say(self, request: dict[str, Any], **what: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", "id": request["id"], **what}).encode() + b"\n")

    def answer(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params") or {}
        if method in self.mute:
            self.unanswered.append(message)
            return
        if (error := self.plan.get("refused", {}).get(method)) is not None:
            self.say(message, error=error)
            return
        info = {"name": "puppet", "version": "1"}
        can: dict[str, Any] = {"prompts": {}} if self.plan.get("toolless") else {"tools": {"listChanged": True}}
        if method == "initialize" and "legacy" in self.eras:
            knows, asked = self.plan.get("knows"), params["protocolVersion"]
            if knows is not None and asked not in knows:
                data = {"supported": knows, "requested": asked}
                self.say(message, error={"code": -32602, "message": "Unsupported protocol version", "data": data})
                return
            greeting = {
                "protocolVersion": "2025-11-25" if knows is None else asked,
                "capabilities": can,
                "serverInfo": info,
            }
            self.say(message, result=self.plan.get("greeting", greeting))
        elif method == "server/discover" and "modern" in self.eras:
            self.say(
                message,
                result={
                    "resultType": "complete",
                    "supportedVersions": [MODERN],
                    "capabilities": can,
                    "ttlMs": 0,
                    "cacheScope": "private",
                    "_meta": {"io.modelcontextprotocol/serverInfo": info},
                },
            )
        elif method == "tools/list" and "tools" in can:
            self.tools_list(message, params)
        elif method == "tools/call":
            self.call(message, params)
        else:
            self.say(message, error={"code": -32601, "message": "Method not found: " + method})

    def tools_list(self, message: dict[str, Any], params: dict[str, Any]) -> None:
        pages = self.plan.get("pages")
        if pages is None:
            self.say(message, result={"tools": self.tools})
            return
        number = int(params.get("cursor", 0))
        more = {} if number + 1 >= pages else {"nextCursor": str(number + 1)}
        self.say(
            message, result={"tools": [{**tool, "name": f"{tool['name']}{number}"} for tool in self.tools], **more}
        )

    def call(self, message: dict[str, Any], params: dict[str, Any]) -> None:
        name, args = params["name"], params.get("arguments") or {}
        if name in self.plan.get("results", {}):
            self.say(message, result=self.plan["results"][name])
        elif name == "echo":
            self.say(message, result={"content": [{"type": "text", "text": args.get("text", "")}]})
        elif name == "count":
            self.progress(params, message)
            self.say(message, result={"content": [{"type": "text", "text": "counted"}]})
        elif name == "twice":
            for text in ("first", "second"):
                self.say(message, result={"content": [{"type": "text", "text": text}]})
        elif name == "wrong":
            wrong = {"content": [{"type": "text", "text": "not yours"}]}
            self.say({"id": 987654}, result=wrong)
            self.say({"id": "x"}, result=wrong)
            self.say(message, result={"content": [{"type": "text", "text": "yours"}]})
        elif name == "last":
            self.say(message, result={"content": [{"type": "text", "text": "last words"}]})
            os._exit(0)
        elif name == "die":
            os._exit(3)
        elif name != "hang":
            self.say(message, error={"code": -32602, "message": "Unknown tool: " + name})

    def progress(self, params: dict[str, Any], message: dict[str, Any]) -> None:
        token = params["_meta"]["progressToken"]
        for done in (1, 2):
            told = {"progressToken": token, "progress": done, "total": 2, "message": "step"}
            self.raw(
                json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": told}).encode() + b"\n"
            )


Puppet(int(sys.argv[1]), json.loads(sys.argv[2])).run()
