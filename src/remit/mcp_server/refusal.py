"""Refusals as errors of JSON-RPC, where MCP wants them so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remit.http.refusal import Refusal
from remit.jsonrpc import message

if TYPE_CHECKING:
    from remit.jsonrpc.protocol import RequestId


class RpcError(Refusal):
    """A request that is refused with a JSON-RPC error."""

    def __init__(self, status: int, code: int, text: str, data: Any = None, about: RequestId | None = None) -> None:
        """Refuse with an HTTP status; `about` is the request's id, if it could be read."""
        error = {"code": code, "message": text} if data is None else {"code": code, "message": text, "data": data}
        super().__init__(status, message.error(about, error).body, "application/json")
