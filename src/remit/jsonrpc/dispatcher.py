"""Requests, answers and notifications over a wire of lines, for both ends of an MCP connection.

Fills the place of the SDK's own dispatcher below its sessions (`mcp.shared.dispatcher.Dispatcher`). There each message
passes two queues, a model and a thread; here a line is decoded once and handed to who waits for it.

    answer         wakes the request with its id; one that nobody waits for is dropped: late, doubled or made up
    request        runs in a task of its own, which a cancellation by the peer ends
    notification   cancels, reports progress, or goes to the session
    anything else  is counted, and shown where the connection fails: programs print to stdout by mistake
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import msgspec
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest, as_request_id
from mcp.shared.dispatcher import run_notify_intercept as intercepted
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, REQUEST_TIMEOUT, RequestId

from remit.jsonrpc.message import error_of, key_of, line_of, number, unreadable_answer

if TYPE_CHECKING:
    from anyio.abc import TaskStatus
    from mcp_types import ErrorData

_log: Final = logging.getLogger("remit.mcp")
_decode: Final = msgspec.json.Decoder().decode
_CONTEXT: Final = TransportContext(kind="stdio", can_send_request=True)
_ONE_WAY: Final = TransportContext(kind="stdio", can_send_request=False)
MAX_REQUESTS: Final = 1_000
"""Requests of the peer that are served at a time; more are refused."""


class Wire(Protocol):
    """Where lines go."""

    def send(self, data: bytes) -> None:
        """Write a line, its end included; never fails, never waits."""
        ...

    async def drained(self) -> None:
        """Wait while the other side is too slow to take more."""
        ...


class LineDispatcher:
    """One side's half of a conversation."""

    def __init__(self, wire: Wire, *, inline: frozenset[str] = frozenset(), answers_nonsense: bool = False) -> None:
        """`inline` names requests that are answered before anything after them is looked at.

        `answers_nonsense` has what is not JSON-RPC answered with an error, as a server does.
        """
        self._wire = wire
        self._inline = inline
        self._answers_nonsense = answers_nonsense
        self._next_id = 0
        self._waiting: dict[RequestId, asyncio.Future[dict[str, Any]]] = {}
        self._progress: dict[RequestId, Callable[..., Awaitable[None]]] = {}
        self._served: dict[RequestId, _Inbound] = {}
        self._tasks: set[asyncio.Future[None]] = set()
        self._held: list[bytes] | None = []
        self._on: tuple[OnRequest, OnNotify, OnNotifyIntercept | None] | None = None
        self._end = asyncio.Event()
        self.why_closed = ""
        """What ended the conversation; empty while it goes on."""
        self.may_ask = True
        """Whether the peer takes requests of ours while we serve its own."""
        self.nonsense = 0
        """Lines that were no messages."""

    # --- the wire's side

    def received(self, line: bytes) -> None:
        """Take a line; those that come before `run` are kept for it."""
        if self.why_closed:
            return
        if self._held is not None:
            self._held.append(line)
        else:
            self._take(line)

    def close(self, why: str) -> None:
        """End the conversation: whoever waits for an answer hears why, and what is served is cancelled."""
        if self.why_closed:
            return
        self.why_closed = why
        for future in self._waiting.values():
            _fail(future, MCPError(code=CONNECTION_CLOSED, message=why))
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()
        self._end.set()

    async def closed(self) -> str:
        """Wait for the end of the conversation; why it ended."""
        await self._end.wait()
        return self.why_closed

    # --- the session's side

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until the conversation ends."""
        self._on = (on_request, on_notify, on_notify_intercept)
        try:
            self._release()
            task_status.started()
            await self._end.wait()
        finally:
            self.close("the session has ended")
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """The answer's result. Raises MCPError: the peer's own, REQUEST_TIMEOUT or CONNECTION_CLOSED."""
        if self.why_closed:
            raise MCPError(code=CONNECTION_CLOSED, message=self.why_closed)
        opts = opts or {}
        request_id = opts.get("request_id") or self._new_id()
        key = key_of(request_id)
        if key in self._waiting:
            raise ValueError(f"a request with the id {request_id!r} is under way")
        body = dict(params or {})
        if (report := opts.get("on_progress")) is not None:
            body["_meta"] = {**(body.get("_meta") or {}), "progressToken": request_id}
        line = line_of({"jsonrpc": "2.0", "id": request_id, "method": method}, body)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[key] = future
        if report is not None:
            self._progress[key] = report
        try:
            self._wire.send(line)
            async with asyncio.timeout(opts.get("timeout")):
                await self._wire.drained()
                return await future
        except TimeoutError:
            self._abandon(request_id, opts, "timed out")
            raise MCPError(code=REQUEST_TIMEOUT, message=f"no answer to {method} in time") from None
        except asyncio.CancelledError:
            self._abandon(request_id, opts, "cancelled")
            raise
        finally:
            self._waiting.pop(key, None)
            self._progress.pop(key, None)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:  # noqa: ARG002 - the protocol's signature; options are for HTTP
        """Send a notification; nobody hears it once the conversation is over."""
        if not self.why_closed:
            self._wire.send(line_of({"jsonrpc": "2.0", "method": method}, params))
            await self._wire.drained()

    # --- what comes in

    def _release(self) -> None:
        """Take what has come meanwhile, up to a request that has to be answered first."""
        held, self._held = self._held or [], None
        if self.why_closed:
            return
        for place, line in enumerate(held):
            self._take(line)
            if self._blocked():
                self._held = held[place + 1 :]
                return

    def _blocked(self) -> bool:
        """Whether a request that was just taken has to be answered before the next line is looked at."""
        return self._held is not None

    def _take(self, line: bytes) -> None:
        try:
            message = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._unreadable(line, str(error))
            return
        if not isinstance(message, dict):
            self._nonsense(line, INVALID_REQUEST, "not a message")
            return
        method, request_id = message.get("method"), as_request_id(message.get("id"))
        if isinstance(method, str):
            params = message.get("params")
            params = params if isinstance(params, dict) else None
            if request_id is not None:
                self._serve(request_id, method, params)
            elif "id" not in message:
                self._notified(method, params)
            else:
                self._nonsense(line, INVALID_REQUEST, "the id is no text or number")
        elif request_id is not None:
            self._answered(request_id, message)
        else:
            self._nonsense(line, INVALID_REQUEST, "neither a request nor an answer")

    def _unreadable(self, line: bytes, why: str) -> None:
        """Whoever waits for an answer that cannot be read hears so, instead of waiting for another."""
        self._nonsense(line, PARSE_ERROR, "not JSON")
        future = self._waiting.get(request_id) if (request_id := unreadable_answer(line)) is not None else None
        if future is not None:
            _fail(future, MCPError(code=PARSE_ERROR, message=f"its answer is no JSON: {why}"))

    def _nonsense(self, line: bytes, code: int, why: str) -> None:
        if not line.strip():
            return
        self.nonsense += 1
        _log.debug("a line that is no message (%s): %r", why, line[:200])
        if self._answers_nonsense:
            self._wire.send(line_of({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}}, None))

    def _answered(self, request_id: RequestId, message: dict[str, Any]) -> None:
        future = self._waiting.get(key_of(request_id))
        if future is None or future.done():
            _log.debug("an answer nobody waits for: id %r", request_id)
            return
        error, result = message.get("error"), message.get("result")
        if isinstance(error, dict):
            _fail(future, error_of(error))
        elif isinstance(result, dict):
            future.set_result(result)
        else:
            _fail(future, MCPError(code=INTERNAL_ERROR, message="the answer is neither a result nor an error"))

    def _notified(self, method: str, params: dict[str, Any] | None) -> None:
        if self._on is None:
            return
        _, on_notify, intercept = self._on
        if method == "notifications/cancelled":
            request_id = as_request_id((params or {}).get("requestId"))
            inbound = self._served.get(key_of(request_id)) if request_id is not None else None
            if inbound is not None:
                inbound.cancel()
        elif method == "notifications/progress":
            self._progressed(params or {})
        if not intercepted(intercept, method, params):
            self._tell(_contained(on_notify(_Inbound(self, None, None), method, params)))

    def _progressed(self, params: dict[str, Any]) -> None:
        token, done = as_request_id(params.get("progressToken")), number(params.get("progress"))
        report = self._progress.get(key_of(token)) if token is not None else None
        if report is not None and done is not None:
            message = params.get("message")
            told = message if isinstance(message, str) else None
            self._tell(_contained(report(done, number(params.get("total")), told)))

    # --- what the peer asks for

    def _serve(self, request_id: RequestId, method: str, params: dict[str, Any] | None) -> None:
        key = key_of(request_id)
        if self._on is None or key in self._served or len(self._served) >= MAX_REQUESTS:
            why = "its id is that of a request under way" if key in self._served else "too many requests at once"
            self._wire.send(_reply_line(request_id, {"error": {"code": INVALID_REQUEST, "message": why}}))
            return
        meta = (params or {}).get("_meta")
        token = as_request_id(meta.get("progressToken")) if isinstance(meta, dict) else None
        inbound = self._served[key] = _Inbound(self, request_id, token)
        inline = method in self._inline
        if inline:
            self._held = []
        inbound.task = asyncio.create_task(self._answer(inbound, method, params))
        inbound.task.add_done_callback(lambda _: self._served_to_the_end(key, inline=inline))
        self._keep(inbound.task)

    def _served_to_the_end(self, key: RequestId, *, inline: bool) -> None:
        """A request is over, even if it was cancelled before its handler began."""
        self._served.pop(key, None)
        if inline:
            self._release()

    async def _answer(self, inbound: _Inbound, method: str, params: dict[str, Any] | None) -> None:
        on_request = self._on[0] if self._on else None
        if on_request is None or inbound.request_id is None:
            msg = "only a request that came in while running is answered"
            raise AssertionError(msg)
        try:
            line = _reply_line(inbound.request_id, {"result": await on_request(inbound, method, params)})
        except asyncio.CancelledError:
            if self.why_closed or inbound.cancel_requested.is_set():
                raise  # nobody waits for the answer
            line = _reply_line(inbound.request_id, {"error": {"code": INTERNAL_ERROR, "message": "given up"}})
        except Exception as error:  # noqa: BLE001 - whatever a handler raises becomes the answer
            line = _reply_line(inbound.request_id, {"error": _handler_error(error, method)})
        finally:
            inbound.end()
        if not inbound.cancel_requested.is_set() and not self.why_closed:
            self._wire.send(line)
            await self._wire.drained()

    # --- common

    def _tell(self, work: Awaitable[None]) -> None:
        self._keep(asyncio.ensure_future(work))

    def _keep(self, task: asyncio.Future[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _new_id(self) -> int:
        while True:
            self._next_id += 1
            if self._next_id not in self._waiting:
                return self._next_id

    def _abandon(self, request_id: RequestId, opts: CallOptions, reason: str) -> None:
        """Tell the peer that nobody waits for this answer any more."""
        if opts.get("cancel_on_abandon", True) and not self.why_closed:
            params = {"requestId": request_id, "reason": reason}
            self._wire.send(line_of({"jsonrpc": "2.0", "method": "notifications/cancelled"}, params))


class _Inbound:
    """What a handler may do with the request it serves (`mcp.shared.dispatcher.DispatchContext`)."""

    __slots__ = ("_dispatcher", "_open", "_token", "cancel_requested", "request_id", "task")

    message_metadata: Final = None

    def __init__(self, dispatcher: LineDispatcher, request_id: RequestId | None, token: RequestId | None) -> None:
        self._dispatcher = dispatcher
        self._token = token
        self.request_id = request_id
        self._open = True
        self.cancel_requested = anyio.Event()
        self.task: asyncio.Task[None] | None = None

    @property
    def transport(self) -> TransportContext:
        return _CONTEXT if self.can_send_request else _ONE_WAY

    @property
    def can_send_request(self) -> bool:
        return self._open and self._dispatcher.may_ask

    def end(self) -> None:
        self._open = False

    def cancel(self) -> None:
        self.cancel_requested.set()
        if self.task is not None:
            self.task.cancel()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if not self.can_send_request:
            raise NoBackChannelError(method)
        return await self._dispatcher.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        if self._open:
            await self._dispatcher.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._token is not None:
            report = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
            told = {name: value for name, value in report.items() if value is not None}
            await self.notify("notifications/progress", told)


def _reply_line(request_id: RequestId, reply: dict[str, Any]) -> bytes:
    return line_of({"jsonrpc": "2.0", "id": request_id, **reply}, None)


def _fail(future: asyncio.Future[dict[str, Any]], error: MCPError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # whoever waited may be gone


def _handler_error(error: Exception, method: str) -> dict[str, Any]:
    known: ErrorData | None = handler_exception_to_error_data(error)
    if known is not None:
        return known.model_dump(by_alias=True, mode="json", exclude_none=True)
    _log.error("the handler of %s failed", method, exc_info=error)
    return {"code": INTERNAL_ERROR, "message": "Internal error"}


async def _contained(work: Awaitable[None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 - a handler's failure is not the conversation's
        _log.exception("the handler of a notification failed")
