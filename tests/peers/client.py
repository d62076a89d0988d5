"""An MCP client without an SDK: it gives what a server wrote, in both eras, on stdio and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import httpx2

from tests.patience import PATIENCE_S

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
NAME: Final = {"name": "remit-tests", "version": "1"}
INITIALIZE: Final[dict[str, Any]] = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": NAME}
META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": NAME,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Wire(Protocol):
    """Carries messages both ways."""

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request; return the message with its answer."""

    async def tell(self, message: dict[str, Any]) -> None:
        """Send a notification."""


class Client:
    """A client in one era of the protocol."""

    def __init__(self, wire: Wire, *, modern: bool = False) -> None:
        self._wire = wire
        self._count = 0
        self.modern = modern

    async def introduction(self) -> dict[str, Any]:
        """Return what a server says of itself; in the older era that opens the session."""
        if self.modern:
            told = await self.ask("server/discover", {})
            return {**told, "serverInfo": told["_meta"]["io.modelcontextprotocol/serverInfo"]}
        told = await self.ask("initialize", INITIALIZE)
        await self._wire.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return told

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request, or `{"error": …}`."""
        self._count += 1
        body = {**params, "_meta": {**META, **params.get("_meta", {})}} if self.modern else params
        answer = await self._wire.ask({"jsonrpc": "2.0", "id": self._count, "method": method, "params": body})
        result: dict[str, Any] = answer["result"] if "result" in answer else {"error": answer["error"]}
        return result


class Lines:
    """Messages as lines of a child's stdin and stdout."""

    def __init__(self, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader) -> None:
        self._stdin = stdin
        self._stdout = stdout

    async def line(self) -> str:
        """Return the next line of output, as of a server over HTTP, which prints its URL."""
        return (await self._stdout.readline()).decode().strip()

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        await self.tell(message)
        while line := await self._stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == message["id"] and "method" not in answer:
                return answer
        raise EOFError(f"the server closed its output before it answered {message['method']}")

    async def tell(self, message: dict[str, Any]) -> None:
        self._stdin.write(json.dumps(message).encode() + b"\n")
        await self._stdin.drain()


class Posts:
    """Messages as POST requests, each answered with JSON or a stream of events."""

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self._url = url
        self._http = http
        self._session: dict[str, str] = {}

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        answer = await self._http.post(self._url, json=message, headers=self._headers(message))
        if session := answer.headers.get("mcp-session-id"):
            self._session = {"mcp-session-id": session}
        streamed = answer.headers["content-type"].startswith("text/event-stream")
        texts = (
            [line.removeprefix("data:") for line in answer.text.split("\n") if line.startswith("data:")]
            if streamed
            else [answer.text]
        )
        answers = [json.loads(text) for text in texts if text.strip()]
        (final,) = [found for found in answers if found.get("id") == message["id"] and "method" not in found]
        result: dict[str, Any] = final
        return result

    async def tell(self, message: dict[str, Any]) -> None:
        answer = await self._http.post(self._url, json=message, headers=self._headers(message))
        assert answer.status_code == 202

    def _headers(self, message: dict[str, Any]) -> dict[str, str]:
        params = message.get("params", {})
        version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion", LEGACY)
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version, **self._session}
        if version == MODERN:
            headers["mcp-method"] = message["method"]
            if name := params.get("name") or params.get("uri"):
                headers["mcp-name"] = name
        return headers


@asynccontextmanager
async def on_stdio(command: list[str], folder: Path, env: Mapping[str, str] | None = None) -> AsyncIterator[Lines]:
    """A server in a process group of its own, which ends with the block."""
    child = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        limit=1 << 24,
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield Lines(child.stdin, child.stdout)
    finally:
        with suppress(ProcessLookupError):  # it may have ended
            os.killpg(child.pid, signal.SIGKILL)
        await child.communicate()


@asynccontextmanager
async def over_http(url: str) -> AsyncIterator[Posts]:
    """Requests to a URL on this machine."""
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        yield Posts(url, http)
