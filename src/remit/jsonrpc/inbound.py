"""One request of the peer's while it is served: what its handler may do with it, and what becomes its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypedDict

from remit.jsonrpc import message
from remit.jsonrpc.message import PROGRESS
from remit.jsonrpc.protocol import INTERNAL_ERROR, MCPError, NoBackChannelError, RequestId, as_request_id

if TYPE_CHECKING:
    from remit.jsonrpc.message import Transport

_log: Final = logging.getLogger("remit.mcp")


class CallOptions(TypedDict, total=False):
    """The terms of a request of ours."""

    request_id: RequestId
    """Its id, instead of the next number."""
    timeout: float
    """Seconds until it is given up."""
    cancel_on_abandon: bool
    """Whether the peer is told that no one waits any more; True unless the protocol forbids it."""
    on_progress: Callable[[Mapping[str, Any]], Awaitable[None]]
    """Is told what the peer reports, as it came; `progress` is a number, as is `total` if it is there."""
    headers: dict[str, str]
    """Headers of HTTP beside it."""


class PeerAsker(Protocol):
    """The sender of requests of ours to the peer."""

    @property
    def may_ask(self) -> bool:
        """Return whether the peer takes any while we serve its own."""
        ...

    async def ask(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None, via: Transport
    ) -> dict[str, Any]:
        """The answer's result. Raises MCPError."""
        ...


class Inbound:
    """The context of a handler: what it may do with the request it serves.

    What is said about the request goes over `wire`; `asking` asks the peer back, where that can be done. `caller` is
    who made it, as far as the transport knows.
    """

    __slots__ = ("_asking", "_open", "_token", "caller", "cancelled", "request_id", "task", "wire")

    def __init__(
        self,
        wire: Transport,
        request_id: RequestId | None,
        params: Mapping[str, Any] | None,
        *,
        asking: PeerAsker | None,
        caller: object = None,
    ) -> None:
        meta = (params or {}).get("_meta")
        self._token = as_request_id(meta.get("progressToken")) if isinstance(meta, dict) else None
        self._asking = asking
        self._open = True
        self.wire = wire
        self.request_id = request_id
        self.caller = caller
        self.cancelled = False
        """Whether the peer does not want it any more."""
        self.task: asyncio.Task[None] | None = None

    @property
    def can_send_request(self) -> bool:
        """Return whether the peer can be asked back."""
        return self._open and self._asking is not None and self._asking.may_ask

    def end(self) -> None:
        """Nothing more is said about it."""
        self._open = False

    def leave(self) -> None:
        """The peer hears nothing of it any more, and cannot be asked back."""
        self._asking = None

    def cancel(self) -> None:
        """The peer does not want it any more."""
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Ask the peer. Raises MCPError, or NoBackChannelError."""
        if self._asking is None or not self.can_send_request:
            raise NoBackChannelError(method)
        return await self._asking.ask(method, params, opts, self.wire)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Tell the peer, before it has its answer."""
        if self._open:
            self.wire.send(message.notification(method, params))
            await self.wire.drained()

    async def progress(self, report: Mapping[str, Any]) -> None:
        """Report progress, if the peer asked for it; a value of None is left out."""
        if self._token is not None:
            members = {name: value for name, value in report.items() if value is not None}
            await self.notify(PROGRESS, {**members, "progressToken": self._token})


class Batch:
    """The answers to requests that came as one message (2025-03-26), and go as one once all are there."""

    def __init__(self, wire: Transport) -> None:
        self._wire = wire
        self._answers: list[bytes] = []

    def send(self, message: message.RpcMessage) -> None:
        """Keep an answer; what else is said goes at once."""
        if message.method:
            self._wire.send(message)
        else:
            self._answers.append(message.body)

    async def drained(self) -> None:
        await self._wire.drained()

    def send_after(self, tasks: Iterable[asyncio.Task[None] | None]) -> None:
        """Send the answers once these have ended."""
        waiting = [task for task in tasks if task is not None]
        gathered = asyncio.gather(*waiting, return_exceptions=True)
        gathered.add_done_callback(lambda _: self._end())

    def _end(self) -> None:
        if self._answers:
            self._wire.send(message.RpcMessage(b"[" + b",".join(self._answers) + b"]"))


Answer = Callable[[Inbound, str, Mapping[str, Any] | None], Awaitable[dict[str, Any]]]
"""Gives the result of a request, by its method and parameters."""
OnNotifyIntercept = Callable[[str, Mapping[str, Any] | None], bool]
"""Hears of notifications first, in the order in which they come; whether one goes no further."""


async def answer_to(
    inbound: Inbound, on_request: Answer, method: str, params: Mapping[str, Any] | None
) -> message.RpcMessage:
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


def intercepted(intercept: OnNotifyIntercept | None, method: str, params: Mapping[str, Any] | None) -> bool:
    """Return whether a notification goes no further; one that the interceptor fails at goes on."""
    try:
        return intercept is not None and intercept(method, params)
    except Exception:  # noqa: BLE001 - as above
        _log.exception("%s could not be intercepted", method)
        return False


def _error_data(error: Exception, method: str) -> dict[str, Any]:
    if isinstance(error, MCPError):
        return error.told
    _log.error("the handler of %s failed", method, exc_info=error)
    return {"code": INTERNAL_ERROR, "message": "Internal error"}
