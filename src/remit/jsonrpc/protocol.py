"""The names of MCP on the wire: codes of errors, versions, headers and keys of `_meta`.

They are written down here, and not taken from the SDK: to import its models takes half a second, for which a client
would wait at each start. Tests hold them against the SDK's.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from remit.codes import Code

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
MCP_METHOD_HEADER: Final = "mcp-method"
PROTOCOL_VERSION_META_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_META_KEY: Final = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_META_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_META_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO_META_KEY: Final = "io.modelcontextprotocol/serverInfo"

RELATED_TASK_META_KEY: Final = "io.modelcontextprotocol/related-task"
SUBSCRIPTION_ID_META_KEY: Final = "io.modelcontextprotocol/subscriptionId"
TASKS: Final = "io.modelcontextprotocol/tasks"
"""The extension by which calls are answered with tasks (2026-07-28)."""
BATCHES_VERSION: Final = "2025-03-26"
"""The only version in which several messages may come as one."""
TASKS_VERSION: Final = "2025-11-25"
"""The only version whose own calls can be."""

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions whose conversations begin with `initialize`, the latest last."""
MODERN_VERSIONS: Final = ("2026-07-28",)
"""Versions whose requests stand for themselves, without a session, the latest last."""

_NUMBERS: Final = {
    Code.ConnectionError: CONNECTION_CLOSED,
    Code.Timeout: REQUEST_TIMEOUT,
    Code.permission_denied: INVALID_REQUEST,
}
RequestId = int | float | str
"""A JSON value: 1.0 is 1, and \"1\" is another."""


class MCPError(Exception):
    """An error of JSON-RPC: one that the peer answered with, or that it is answered with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message

    @property
    def told(self) -> dict[str, Any]:
        """Return it as it travels."""
        data = {} if self.data is None else {"data": self.data}
        return {"code": self.code, "message": self.message, **data}


class UnansweredError(MCPError):
    """Said at this end of a request that got no answer, or none that can be read: never a peer's word.

    A peer may use any number, so this is told by its type; its own number is for those to whom it is passed on.
    """

    def __init__(self, cause: Code, message: str) -> None:
        super().__init__(_NUMBERS.get(cause, INTERNAL_ERROR), message)
        self.cause = cause


class SessionGoneError(UnansweredError):
    """The peer refused a request because it does not know its session: it certainly did not take it."""

    def __init__(self) -> None:
        super().__init__(Code.SpawnFailed, "Session terminated")


class MethodNotFoundError(MCPError):
    """There is no such method, in the version that is spoken."""

    def __init__(self, method: str) -> None:
        super().__init__(METHOD_NOT_FOUND, "Method not found", method)


class NoBackChannelError(MCPError):
    """The peer takes no requests of ours, here and now."""

    def __init__(self, method: str) -> None:
        super().__init__(INVALID_REQUEST, f"{method} cannot be asked here: the peer takes no requests")


def as_request_id(value: object) -> RequestId | None:
    """The id of a message; None for what cannot be one, such as `true`."""
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def has_handshake(version: str) -> bool:
    """Return whether a conversation of this version begins with `initialize` (before 2026-07-28)."""
    return version in HANDSHAKE_VERSIONS


def is_modern(version: str | None) -> bool:
    """Return whether requests of this version stand for themselves (2026-07-28 and later), without a session."""
    return version in MODERN_VERSIONS


def header_value(text: str) -> str:
    """Text as a header of HTTP carries it: what would not arrive as it is goes in base64 (2026-07-28)."""
    plain = text.isascii() and text.isprintable() and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="
