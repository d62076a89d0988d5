"""One request of the peer's while it is served: what its handler may do with it, and what becomes its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext

from remit.jsonrpc import message
from remit.jsonrpc.protocol import INTERNAL_ERROR, RequestId, as_request_id

if TYPE_CHECKING:
    from mcp_types import ErrorData

    from remit.jsonrpc.transport import Transport

_log: Final = logging.getLogger("remit.mcp")
_ASKING: Final = TransportContext(kind="json-rpc", can_send_request=True)
_TOLD: Final = TransportContext(kind="json-rpc", can_send_request=False)


class Asking(Protocol):
    """The sender of requests of ours to the peer."""

    @property
    def may_ask(self) -> bool:
        """Whether the peer takes any while we serve its own."""
        ...

    async def ask(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None, via: Transport
    ) -> dict[str, Any]:
        """The answer's result. Raises MCPError."""
        ...


class Inbound:
    """The context of a handler: what it may do with the request it serves (`mcp.shared.dispatcher.DispatchContext`)."""

    __slots__ = ("_asking", "_open", "_token", "cancel_requested", "message_metadata", "request_id", "task", "wire")

    def __init__(
        self,
        wire: Transport,
        request_id: RequestId | None,
        params: Mapping[str, Any] | None,
        *,
        asking: Asking | None,
        caller: object = None,
    ) -> None:
        """Send what is said about it over `wire`; `asking` asks the peer back, where that can be done.

        `caller` is who made it, as far as the transport knows.
        """
        meta = (params or {}).get("_meta")
        self._token = as_request_id(meta.get("progressToken")) if isinstance(meta, dict) else None
        self._asking = asking
        self._open = True
        self.wire = wire
        self.request_id = request_id
        self.message_metadata = None if caller is None else ServerMessageMetadata(request_context=caller)
        self.cancel_requested = anyio.Event()
        self.task: asyncio.Task[None] | None = None

    @property
    def transport(self) -> TransportContext:
        """Whether the peer can be asked back."""
        return _ASKING if self.can_send_request else _TOLD

    @property
    def can_send_request(self) -> bool:
        """Whether the peer can be asked back."""
        return self._open and self._asking is not None and self._asking.may_ask

    def end(self) -> None:
        """Nothing more is said about it."""
        self._open = False

    def leave(self) -> None:
        """The peer hears nothing of it any more, and cannot be asked back."""
        self._asking = None

    def cancel(self) -> None:
        """The peer does not want it any more."""
        self.cancel_requested.set()
        if self.task is not None:
            self.task.cancel()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Ask the peer. Raises MCPError, or NoBackChannelError."""
        if self._asking is None or not self.can_send_request:
            raise NoBackChannelError(method)
        return await self._asking.ask(method, params, opts, self.wire)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:  # noqa: ARG002 - the protocol's signature
        """Tell the peer, before it has its answer."""
        if self._open:
            self.wire.send(message.notification(method, params))
            await self.wire.drained()

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the peer asked for it."""
        if self._token is not None:
            report = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
            told = {name: value for name, value in report.items() if value is not None}
            await self.notify("notifications/progress", told)


Answer = Callable[[Inbound, str, Mapping[str, Any] | None], Awaitable[dict[str, Any]]]
"""Gives the result of a request, by its method and parameters."""


async def answer_to(
    inbound: Inbound, on_request: Answer, method: str, params: Mapping[str, Any] | None
) -> message.Message:
    """Have it handled; whatever the handler raises, short of a cancellation, becomes the answer."""
    request_id = inbound.request_id
    if request_id is None:
        msg = "a notification has no answer"
        raise AssertionError(msg)
    try:
        return message.result(request_id, await on_request(inbound, method, params))
    except Exception as error:  # noqa: BLE001 - see above
        return message.error(request_id, _error_data(error, method))
    finally:
        inbound.end()


async def contained(work: Awaitable[None]) -> None:
    """Have a notification handled; its handler's failure is not the conversation's."""
    try:
        await work
    except Exception:  # noqa: BLE001 - see above
        _log.exception("the handler of a notification failed")


def _error_data(error: Exception, method: str) -> dict[str, Any]:
    known: ErrorData | None = handler_exception_to_error_data(error)
    if known is not None:
        return known.model_dump(by_alias=True, mode="json", exclude_none=True)
    _log.error("the handler of %s failed", method, exc_info=error)
    return {"code": INTERNAL_ERROR, "message": "Internal error"}
