"""The names of MCP on the wire: codes of errors, versions, headers and keys of `_meta`."""

from __future__ import annotations

from typing import Final

from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

__all__ = ["MCPError"]  # the SDK catches its own error, and raises it: everything else imports it from here

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CONNECTION_CLOSED: Final = -32000
REQUEST_TIMEOUT: Final = -32001
HEADER_MISMATCH: Final = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042

MCP_PROTOCOL_VERSION_HEADER: Final = "mcp-protocol-version"
MCP_NAME_HEADER: Final = "mcp-name"
PROTOCOL_VERSION_META_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES_META_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_META_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO_META_KEY: Final = "io.modelcontextprotocol/serverInfo"

RELATED_TASK_META_KEY: Final = "io.modelcontextprotocol/related-task"
SUBSCRIPTION_ID_META_KEY: Final = "io.modelcontextprotocol/subscriptionId"
TASKS: Final = "io.modelcontextprotocol/tasks"
"""The extension by which calls are answered with tasks (2026-07-28)."""
TASKS_VERSION: Final = "2025-11-25"
"""The only version whose own calls can be."""

MODERN_VERSIONS: Final = MODERN_PROTOCOL_VERSIONS
"""Versions whose requests stand for themselves, without a session."""

RequestId = int | str


def as_request_id(value: object) -> RequestId | None:
    """The id of a message; None for what cannot be one, such as `true`."""
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def has_handshake(version: str) -> bool:
    """Whether a conversation of this version begins with `initialize` (before 2026-07-28)."""
    return version in HANDSHAKE_PROTOCOL_VERSIONS


def is_modern(version: str | None) -> bool:
    """Whether requests of this version stand for themselves (2026-07-28 and later), without a session."""
    return version in MODERN_VERSIONS
