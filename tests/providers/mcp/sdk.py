"""A server of the SDK on streamable HTTP, in this process, on a port that the kernel chooses."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import mcp_types as types
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ServerEvent
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.patience import PATIENCE_S

ECHO: Final = types.Tool(
    name="echo",
    description="Gives a text back.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}},
)
HANG: Final = types.Tool(name="hang", description="Never answers.", input_schema={"type": "object"})
Before = Callable[[Scope, Send], Awaitable[bool]]


class _Bus(InMemorySubscriptionBus):
    """Tells when somebody hears of changes."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        self.heard.set()
        return super().subscribe(listener)


class HttpServer:
    """What it was asked, and what it does."""

    def __init__(self) -> None:
        self.tools = [ECHO, HANG]
        self.hanging = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.bus = _Bus()
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.before: Before | None = None
        self.url = ""

    async def listening(self) -> None:
        """Wait until somebody hears of changes (2026-07-28)."""
        async with asyncio.timeout(PATIENCE_S):
            await self.bus.heard.wait()

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.tools)

    async def call_tool(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "hang":
            self.hanging.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
        if params.name != "echo":
            raise MCPError(types.INVALID_PARAMS, f"there is no {params.name}")
        text = (params.arguments or {}).get("text", "")
        if text == "change":
            changed = types.ToolListChangedNotification()
            await context.session.send_notification(changed, related_request_id=context.request_id)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    def app(self, inner: ASGIApp) -> ASGIApp:
        """The application, which notes what comes and may answer something else."""

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                headers = {name.decode(): value.decode() for name, value in scope["headers"]}
                self.requests.append((scope["method"], headers))
                if self.before is not None and await self.before(scope, send):
                    return
            await inner(scope, receive, send)

        return watched


class _Uvicorn(uvicorn.Server):
    """Tells when it serves, and leaves signals alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serving = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serving.set()


@asynccontextmanager
async def http_server(port: int = 0, **options: Any) -> AsyncIterator[HttpServer]:
    """A server that listens within the block."""
    made = HttpServer()
    server = Server(
        "http",
        version="1",
        on_list_tools=made.list_tools,
        on_call_tool=made.call_tool,
        on_subscriptions_listen=ListenHandler(made.bus),
    )
    listening = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(
        made.app(server.streamable_http_app(**options)), log_level=logging.CRITICAL, timeout_graceful_shutdown=0
    )
    running = _Uvicorn(config)
    task = asyncio.create_task(running._serve(sockets=[listening]))
    await running.serving.wait()
    made.url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    try:
        yield made
    finally:
        running.should_exit = True
        await task
        listening.close()
        watchers = [each for each in asyncio.all_tasks() if "_shutdown_watcher" in repr(each.get_coro())]
        for watcher in watchers:  # sse-starlette leaves one to every loop
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)


async def answer(send: Send, status: int, body: bytes = b"", kind: bytes = b"text/plain") -> None:
    """Answer a request by hand."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": body})
