"""Tools whose answer needs nobody: one for every kind of content, and what a server may send while it works.

Their names, arguments and answers are what the scenarios of the official conformance suite ask of a server under test.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context = ServerRequestContext[Any, Any]
Handler = Callable[[Context, types.CallToolRequestParams], Awaitable[types.CallToolResult | types.InputRequiredResult]]

PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"  # one red pixel, PNG
)
SILENCE: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA=="  # one sample, WAV
NO_ARGUMENTS: Final[dict[str, Any]] = {"type": "object", "properties": {}}

RICH_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"city": {"type": "string"}}}},
    "properties": {
        "address": {"$ref": "#/$defs/address"},
        "contact": {"enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contact": {"const": "phone"}}, "required": ["contact"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
MIRRORED_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}

bus: Final = InMemorySubscriptionBus()
"""Tells streams of `subscriptions/listen` of changes."""


@dataclass(frozen=True)
class Entry:
    """A tool and what it does."""

    description: str
    handle: Handler
    schema: dict[str, Any]

    def listed(self, name: str) -> types.Tool:
        """As `tools/list` shows it."""
        return types.Tool(name=name, description=self.description, input_schema=self.schema)


def text(value: str, *, is_error: bool = False) -> types.CallToolResult:
    """A result of one line."""
    return types.CallToolResult(content=[types.TextContent(text=value)], is_error=is_error)


def entry(description: str, handle: Handler, schema: dict[str, Any] = NO_ARGUMENTS) -> Entry:
    """A row of the table of tools."""
    return Entry(description, handle, schema)


def _answer(*content: types.ContentBlock) -> Handler:
    """A tool that always says the same."""

    async def handle(_context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=list(content))

    return handle


def _resource(uri: str, mime_type: str, content: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=content))


async def _fails(_context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    return text("This tool intentionally returns an error for testing", is_error=True)


async def _logs(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    """Log three lines; a client of 2026-07-28 has to have asked for them in this request."""
    asked = types.LOG_LEVEL_META_KEY in (context.meta or {})
    if asked or context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            params = types.LoggingMessageNotificationParams(level="info", data=line)
            await context.session.send_notification(
                types.LoggingMessageNotification(params=params), related_request_id=context.request_id
            )
    return text("Three lines were logged")


async def _progresses(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
    return text("Progress was reported")


async def _reconnects(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    """Close the stream the answer is awaited on: it is found on the next one."""
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    return text("The stream was closed before this answer")


async def _changes_tools(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    await bus.publish(ToolsListChanged())
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        await context.session.send_tool_list_changed()
    return text("Clients were told that the tools changed")


async def _changes_prompts(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    await bus.publish(PromptsListChanged())
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        await context.session.send_prompt_list_changed()
    return text("Clients were told that the prompts changed")


_TEXT: Final = types.TextContent(text="This is a simple text response for testing.")
_IMAGE: Final = types.ImageContent(data=PIXEL, mime_type="image/png")

TOOLS: Final[dict[str, Entry]] = {
    "test_simple_text": entry("Answers with text", _answer(_TEXT)),
    "test_image_content": entry("Answers with an image", _answer(_IMAGE)),
    "test_audio_content": entry("Answers with sound", _answer(types.AudioContent(data=SILENCE, mime_type="audio/wav"))),
    "test_embedded_resource": entry(
        "Answers with a resource",
        _answer(_resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
    ),
    "test_multiple_content_types": entry(
        "Answers with text, an image and a resource",
        _answer(
            types.TextContent(text="Multiple content types test:"),
            _IMAGE,
            _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ),
    ),
    "test_error_handling": entry("Always fails", _fails),
    "test_tool_with_logging": entry("Logs three lines while it runs", _logs),
    "test_logging_tool": entry("Logs three lines where they are asked for", _logs),
    "test_tool_with_progress": entry("Reports progress while it runs", _progresses),
    "test_reconnection": entry("Closes the stream that its answer is awaited on", _reconnects),
    "test_trigger_tool_change": entry("Tells clients that the tools changed", _changes_tools),
    "test_trigger_prompt_change": entry("Tells clients that the prompts changed", _changes_prompts),
    "json_schema_2020_12_tool": entry("Has a schema of many keywords", _answer(_TEXT), RICH_SCHEMA),
    "test_mirrored_header": entry("Has an argument that HTTP repeats", _answer(_TEXT), MIRRORED_SCHEMA),
}
