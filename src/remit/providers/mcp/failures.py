"""Failures of the SDK, the transport or the server in the gateway's words; one table (contract: tools)."""

from __future__ import annotations

from typing import Final

from remit.codes import Code
from remit.errors import ProviderError
from remit.jsonrpc.protocol import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    URL_ELICITATION_REQUIRED,
    MCPError,
)
from remit.tools.remote import MCP_ERROR

CAUSE: Final = "remit_cause"
"""Where the data of an error of ours names the cause it has for us."""
UNKNOWN_SESSION: Final = "remit_unknown_session"
"""Key of the data of an error of ours for a request that was refused because its session is not known."""
_CAUSES: Final = {
    CONNECTION_CLOSED: Code.ConnectionError,
    REQUEST_TIMEOUT: Code.Timeout,
    METHOD_NOT_FOUND: Code.ToolNotFound,
    PARSE_ERROR: Code.BadGateway,
    INVALID_PARAMS: Code.InvalidInput,
    URL_ELICITATION_REQUIRED: Code.AuthError,
}
_NAMED: Final = {each.name: each for each in (Code.AuthError, Code.BadGateway, Code.NetworkError, Code.SpawnFailed)}
_OURS: Final = frozenset({Code.ConnectionError, Code.NetworkError, Code.SpawnFailed, Code.Timeout})
_GONE: Final = ("session not found", "session terminated", "session has been terminated", "unknown session")
"""The words in which a server on HTTP says that it does not know our session any more."""


def translated(error: Exception, server: str) -> ProviderError:
    """The provider's error for whatever a call raised."""
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, MCPError):
        cause = _cause(error)
        detail = None
        if cause not in _OURS:  # these are ours, or nothing a client could act on
            detail = {MCP_ERROR: error.told}
        return ProviderError(f"{server}: {error.message}", cause=cause, detail=detail)
    if isinstance(error, TimeoutError):
        return ProviderError(f"{server}: no answer in time", cause=Code.Timeout)
    if _of_the_network(error):
        return ProviderError(f"{server}: {type(error).__name__}: {error}", cause=Code.NetworkError)
    return ProviderError(f"{server}: {type(error).__name__}: {error}", cause=Code.BadGateway)


def lost(error: Exception) -> str | None:
    """Say why the connection is of no use any more, where this error says so; a request that failed alone does not."""
    if isinstance(error, MCPError):
        return error.message if _forgotten(error) else None
    return str(error) or type(error).__name__ if _of_the_network(error) else None


def refused_for_its_session(error: Exception) -> bool:
    """Return whether a request was certainly not taken, and may be in a new session."""
    return isinstance(error, MCPError) and isinstance(error.data, dict) and error.data.get(UNKNOWN_SESSION) is True


def _cause(error: MCPError) -> Code | None:
    if refused_for_its_session(error):
        return Code.SpawnFailed
    if _forgotten(error):
        return Code.ConnectionError
    named = error.data.get(CAUSE) if isinstance(error.data, dict) else None
    return _NAMED[named] if isinstance(named, str) and named in _NAMED else _CAUSES.get(error.code)


def _forgotten(error: MCPError) -> bool:
    return error.code == INVALID_REQUEST and any(words in error.message.lower() for words in _GONE)


def _of_the_network(error: Exception) -> bool:
    return isinstance(error, OSError) or type(error).__module__.startswith(("aiohttp", "anyio"))
