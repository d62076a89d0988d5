"""A client of the bare protocol on a real process's stdin and stdout."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from tests.cli.conftest import Project
from tests.patience import PATIENCE_S

MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bare", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}


class Talk:
    """Starts a command that serves MCP on stdio, and ends it."""

    def __init__(
        self, project: Project, *words: str, modern: bool = False, env: Mapping[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            project.command(*words),
            cwd=project.folder,
            env={**project.env, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._modern = modern
        self._asked = 0
        self.notices: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()  # not read to its end: what is left of a broken process may hold it

    def hello(self) -> dict[str, Any]:
        """The handshake of the older protocol."""
        welcome = self.ask("initialize", _HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return welcome

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The whole answer to a request."""
        given = dict(params or {})
        if self._modern:
            given["_meta"] = {**ENVELOPE, **given.get("_meta", {})}
        self._asked += 1
        self.send({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": given})
        return self.answer(self._asked)

    def call(self, name: str, **args: Any) -> dict[str, Any]:
        """The result of a call."""
        answer = self.ask("tools/call", {"name": name, "arguments": args})
        result: dict[str, Any] = answer["result"]
        return result

    def send(self, message: dict[str, Any]) -> None:
        self.raw(json.dumps(message).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def answer(self, identifier: int | None) -> dict[str, Any]:
        """The answer of this id; every line before it is a message too."""
        while True:
            message = self.line()
            if "method" not in message and message.get("id") == identifier:
                return message
            self.notices.append(message)

    def line(self) -> dict[str, Any]:
        """The next line of stdout, which is a message or the test fails."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"it closed its stdout; stderr: {self.leave()[2]}"
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def leave(self) -> tuple[int, str, str]:
        """Close its stdin; its exit status, and what it still wrote."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out.decode(), err.decode()


def text_of(result: dict[str, Any]) -> str:
    """The only text of a result."""
    (block,) = result["content"]
    text: str = block["text"]
    return text
