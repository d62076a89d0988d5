"""A server of the official SDK that has everything the conformance suite asks of a server.

`python -m tests.peers.conformance_server` speaks on stdio; with `--http` it listens on a port that the kernel chooses
and prints its URL first. `tests.peers.servers.conformance()` gives either as a command that runs from any folder.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any, Final

import mcp_types as types
import uvicorn
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from tests.peers import conformance_content as content
from tests.peers import conformance_dialogue, conformance_tools
from tests.peers.conformance_tools import Context

NAME: Final = "remit-conformance"
RETRY_MS: Final = 100
TOOLS: Final = {**conformance_tools.TOOLS, **conformance_dialogue.TOOLS}
_MINUTE: Final = CacheHint(ttl_ms=60_000, scope="public")
_CACHED: Final[dict[CacheableMethod, CacheHint]] = {
    "tools/list": _MINUTE,
    "prompts/list": _MINUTE,
    "resources/list": _MINUTE,
    "resources/templates/list": _MINUTE,
    "resources/read": _MINUTE,
}


class KeptEvents(EventStore):
    """Events of streams, so that a client that lost one finds the rest; each is named by its place."""

    def __init__(self) -> None:
        self._events: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what followed on the same stream; its name, or None where the event is unknown."""
        place = int(last_event_id) if last_event_id.isdecimal() else 0
        if not 1 <= place <= len(self._events):
            return None
        stream = self._events[place - 1][0]
        for number, (of, message) in enumerate(self._events[place:], start=place + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


async def list_tools(_context: Context, _params: content.Page) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[row.listed(name) for name, row in TOOLS.items()])


async def call_tool(
    context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """Call a tool; -32602 if there is none."""
    row = TOOLS.get(params.name)
    if row is None:
        raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name}")
    return await row.handle(context, params)


def _schema(name: str) -> dict[str, Any] | None:
    return TOOLS[name].schema if name in TOOLS else None


def server() -> Server[dict[str, Any]]:
    """All of it, for both eras of the protocol."""
    made = Server(
        NAME,
        version="1.0.0",
        cache_hints=_CACHED,
        get_tool_input_schema=_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=content.list_resources,
        on_list_resource_templates=content.list_templates,
        on_read_resource=content.read_resource,
        on_subscribe_resource=content.subscribe,
        on_unsubscribe_resource=content.unsubscribe,
        on_subscriptions_listen=ListenHandler(conformance_tools.bus),
        on_list_prompts=content.list_prompts,
        on_get_prompt=content.get_prompt,
        on_completion=content.complete,
    )
    made.add_request_handler("logging/setLevel", types.SetLevelRequestParams, content.set_level)
    made.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return made


async def serve_http() -> None:
    """Serve on a port of the loopback that the kernel chooses; the first line printed is the URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = server().streamable_http_app(event_store=KeptEvents(), retry_interval=RETRY_MS)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)  # noqa: T201 - how its URL is made known
    await uvicorn.Server(config).serve(sockets=[listening])


async def serve_stdio() -> None:
    """Serve whoever started it."""
    made = server()
    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    async with stdio_server() as (incoming, outgoing):
        await made.run(incoming, outgoing, made.create_initialization_options(changes))


if __name__ == "__main__":
    asyncio.run(serve_http() if "--http" in sys.argv[1:] else serve_stdio())
