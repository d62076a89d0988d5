"""Failures of the SDK, the transport or the server in the gateway's words; one table (contract: tools)."""

from __future__ import annotations

from typing import Final

from remit.codes import Code
from remit.errors import ProviderError
from remit.jsonrpc.protocol import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    MCPError,
    SessionGoneError,
    UnansweredError,
)
from remit.tools.remote import MCP_ERROR

_CAUSES: Final = {
    METHOD_NOT_FOUND: Code.ToolNotFound,
    INVALID_PARAMS: Code.InvalidInput,
    URL_ELICITATION_REQUIRED: Code.AuthError,
}
_GONE: Final = ("session not found", "session terminated", "session has been terminated", "unknown session")
"""The words in which a server on HTTP says that it does not know our session any more."""


def translated(error: Exception, server: str) -> ProviderError:
    """The provider's error for whatever a call raised."""
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, MCPError):
        return _answered(error, f"{server}: {error.message}")
    if isinstance(error, TimeoutError):
        return ProviderError(f"{server}: no answer in time", cause=Code.Timeout)
    if _of_the_network(error):
        return ProviderError(f"{server}: {type(error).__name__}: {error}", cause=Code.NetworkError)
    return ProviderError(f"{server}: {type(error).__name__}: {error}", cause=Code.BadGateway)


def _answered(error: MCPError, reason: str) -> ProviderError:
    """Return what an error of JSON-RPC means: the server's own goes to its client as it came."""
    if isinstance(error, UnansweredError):
        return ProviderError(reason, cause=error.cause)
    if _forgotten(error):
        return ProviderError(reason, cause=Code.ConnectionError)
    return ProviderError(reason, cause=_CAUSES.get(error.code), detail={MCP_ERROR: error.told})


def lost(error: Exception) -> str | None:
    """Say why the connection is of no use any more, where this error says so; a request that failed alone does not."""
    if isinstance(error, MCPError):
        return error.message if _forgotten(error) else None
    return str(error) or type(error).__name__ if _of_the_network(error) else None


def _forgotten(error: MCPError) -> bool:
    if isinstance(error, UnansweredError):
        return isinstance(error, SessionGoneError)
    return error.code == INVALID_REQUEST and any(words in error.message.lower() for words in _GONE)


def _of_the_network(error: Exception) -> bool:
    return isinstance(error, OSError) or type(error).__module__.startswith(("aiohttp", "anyio"))
