"""Requests, answers and notifications over a wire, for both ends of an MCP connection.

In the SDK's own dispatcher each message passes two queues, a model and a task or thread; here it is decoded once and
handed to who waits for it.

    answer         wakes the request with its id; one that no one waits for is dropped: late, doubled or made up
    request        runs in a task of its own, which a cancellation by the peer ends
    notification   cancels, reports progress, or goes to the session
    anything else  is counted, and shown where the connection fails: programs print to stdout by mistake

What belongs to a request of the peer's, its answer too, goes back the way the request came: on a pipe that is the one
wire, over HTTP each request has its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from remit.codes import Code
from remit.jsonrpc import message as words
from remit.jsonrpc.inbound import (
    Answer,
    Batch,
    CallOptions,
    Inbound,
    OnNotifyIntercept,
    answer_to,
    contained,
    intercepted,
)
from remit.jsonrpc.message import CANCELLED, PROGRESS, UnreadableMessageError, error_of, is_request, number, own_id
from remit.jsonrpc.protocol import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    MCPError,
    RequestId,
    UnansweredError,
    as_request_id,
)
from remit.tasks import Tasks

if TYPE_CHECKING:
    from remit.jsonrpc.message import Transport

_log: Final = logging.getLogger("remit.mcp")
OnNotify = Callable[[Inbound, str, Mapping[str, Any] | None], Awaitable[None]]
_ANSWERS: Final = frozenset({"result", "error"})
MAX_REQUESTS: Final = 1_000
"""Requests of the peer that are served at a time; more are refused."""


class Dispatcher:
    """One side's half of a conversation.

    `inline` names requests that are answered before anything after them is looked at; `lasting`, streams.
    `answers_invalid` has what is not JSON-RPC answered with an error, as a server does.
    """

    def __init__(
        self,
        wire: Transport,
        *,
        inline: frozenset[str] = frozenset(),
        lasting: frozenset[str] = frozenset(),
        answers_invalid: bool = False,
    ) -> None:
        self._wire = wire
        self._inline = inline
        self._lasting = lasting
        self._answers_invalid = answers_invalid
        self._ids = count(1)
        self._waiting: dict[RequestId, asyncio.Future[dict[str, Any]]] = {}
        self._transports: dict[RequestId, Transport] = {}
        self._progress: dict[RequestId, Callable[..., Awaitable[None]]] = {}
        self._served: dict[RequestId, Inbound] = {}
        self._owed: set[RequestId] = set()
        """Requests whose answers are waited for at the end."""
        self._ending = ""
        self._patience_s = 0.0
        self._limit: asyncio.TimerHandle | None = None
        self._tasks = Tasks()
        self._held: list[bytes] | None = []
        self._on: tuple[Answer, OnNotify, OnNotifyIntercept | None] | None = None
        self._end = asyncio.Event()
        self.why_closed = ""
        """The reason why the conversation ended; empty while it goes on."""
        self.batches = False
        """Whether several messages may come as one (2025-03-26)."""
        self.may_ask = True
        """Whether the peer takes requests of ours while we serve its own."""
        self.invalid_messages = 0
        """Input that was no message."""

    # --- the wire's side

    def received(self, body: bytes) -> None:
        """Take what came; what comes before `run` is kept for it."""
        if self.why_closed:
            return
        if self._held is not None:
            self._held.append(body)
        else:
            self._read(body)

    def take(
        self, message: Mapping[str, Any], via: Transport | None = None, caller: object = None
    ) -> asyncio.Task[None] | None:
        """Take a message of a caller; of a request, the task that serves it.

        What is said about it goes back `via` its own wire.
        """
        method, request_id = message.get("method"), as_request_id(message.get("id"))
        if isinstance(method, str):
            params = message.get("params")
            params = params if isinstance(params, dict) else None
            if request_id is not None:
                inbound = Inbound(via or self._wire, request_id, params, asking=self, caller=caller)
                return self._serve(inbound, request_id, method, params)
            if "id" not in message:
                self._notified(Inbound(via or self._wire, None, params, asking=self, caller=caller), method, params)
            else:
                self._invalid(INVALID_REQUEST, "the id is neither text nor a number")
        elif (
            request_id is not None
            and "method" not in message
            and (_ANSWERS & message.keys() or not self._answers_invalid)
        ):
            self._answered(request_id, message)
        else:
            self._invalid(INVALID_REQUEST, "neither a request nor an answer", request_id)
        return None

    def left(self, via: Transport) -> None:
        """Drop what still arrives on this wire for a request; the request itself may go on."""
        for inbound in self._served.values():
            if inbound.wire is via:
                inbound.leave()
        for key in [key for key, wire in self._transports.items() if wire is via]:
            self.fail(key, UnansweredError(Code.ConnectionError, "the client left"))

    def awaits(self, request_id: RequestId) -> bool:
        """Return whether a request of ours has no answer yet."""
        future = self._waiting.get(request_id)
        return future is not None and not future.done()

    def fail(self, request_id: RequestId, error: MCPError) -> None:
        """A request of ours gets no answer any more; a waiter for it hears why."""
        future = self._waiting.get(own_id(request_id, self._waiting))
        if future is not None:
            _fail(future, error)

    def finish(self, reason: str, patience_s: float) -> None:
        """End the conversation once what has come is answered, or takes `patience_s` from now or the answer before."""
        if self.why_closed:
            return
        self._ending, self._patience_s = reason, patience_s
        self._fail_all(reason)
        self._go_on()

    def close(self, reason: str) -> None:
        """End the conversation: a waiter for an answer hears why, and what is served is cancelled."""
        if self.why_closed:
            return
        self.why_closed = reason
        if self._limit is not None:
            self._limit.cancel()
        self._fail_all(reason)
        self._tasks.cancel()
        self._end.set()

    async def closed(self) -> str:
        """Wait for the end of the conversation; why it ended."""
        await self._end.wait()
        return self.why_closed

    # --- the session's side

    async def run(
        self, on_request: Answer, on_notify: OnNotify, on_notify_intercept: OnNotifyIntercept | None = None
    ) -> None:
        """Serve until the conversation ends."""
        try:
            self.start(on_request, on_notify, on_notify_intercept)
            await self._end.wait()
        finally:
            await self.stop()

    def start(
        self, on_request: Answer, on_notify: OnNotify, on_notify_intercept: OnNotifyIntercept | None = None
    ) -> None:
        """Serve from now on."""
        self._on = (on_request, on_notify, on_notify_intercept)
        self._release()
        self._go_on()

    async def stop(self) -> None:
        """Serve no more; what was being served has ended."""
        self.close("the session has ended")
        await self._tasks.ended()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """The answer's result. Raises MCPError: the peer's own, or UnansweredError."""
        return await self.ask(method, params, opts, self._wire)

    async def ask(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None, via: Transport
    ) -> dict[str, Any]:
        """The same over a wire that belongs to a request of the peer's."""
        if reason := self.why_closed or self._ending:
            raise UnansweredError(Code.ConnectionError, reason)
        opts = opts or {}
        request_id = opts.get("request_id") or next(each for each in self._ids if each not in self._waiting)
        if request_id in self._waiting:
            raise ValueError(f"a request with the id {request_id!r} is under way")
        body = dict(params or {})
        if (report := opts.get("on_progress")) is not None:
            body["_meta"] = {**(body.get("_meta") or {}), "progressToken": request_id}
        message = words.request(request_id, method, body, opts.get("headers", {}))
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        if via is not self._wire:
            self._transports[request_id] = via
        if report is not None:
            self._progress[request_id] = report
        try:
            via.send(message)
            async with asyncio.timeout(opts.get("timeout")):
                return await future
        except TimeoutError:
            self._abandon(request_id, opts, "timed out", via)
            raise UnansweredError(Code.Timeout, f"no answer to {method} in time") from None
        except asyncio.CancelledError:
            self._abandon(request_id, opts, "cancelled", via)
            raise
        finally:
            self._waiting.pop(request_id, None)
            self._transports.pop(request_id, None)
            self._progress.pop(request_id, None)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification; it is dropped once the conversation is over."""
        if not self.why_closed:
            self._wire.send(words.notification(method, params, (opts or {}).get("headers", {})))
            await self._wire.drained()

    # --- what comes in

    def _release(self) -> None:
        """Take what has come meanwhile, up to a request that has to be answered first."""
        held, self._held = self._held or [], None
        if self.why_closed:
            return
        for place, body in enumerate(held):
            self._read(body)
            if self._blocked():
                self._held = held[place + 1 :]
                return

    def _blocked(self) -> bool:
        """Return whether a request that was just taken has to be answered before the next message is looked at."""
        return self._held is not None

    def _read(self, body: bytes) -> None:
        try:
            message = words.read(body)
        except UnreadableMessageError as error:
            self._unreadable(body, error)
            return
        if isinstance(message, dict):
            self.take(message)
        elif isinstance(message, list) and message and self.batches:
            batch = Batch(self._wire)
            batch.send_after(self.take(each if isinstance(each, dict) else {}, batch) for each in message)
        else:
            self._invalid(INVALID_REQUEST, "not a message")

    def _unreadable(self, body: bytes, error: UnreadableMessageError) -> None:
        """A waiter for an answer that cannot be read hears so, as does who asks something that cannot be."""
        if body.strip():
            _log.debug("not JSON: %r", body[:200])
            self._invalid(PARSE_ERROR, f"it cannot be read: {error}", None if error.is_answer else error.request_id)
        if error.is_answer and error.request_id is not None:
            self.fail(error.request_id, UnansweredError(Code.BadGateway, f"its answer cannot be read: {error}"))

    def _invalid(self, code: int, reason: str, request_id: RequestId | None = None) -> None:
        self.invalid_messages += 1
        _log.debug("something came that is not a message: %s", reason)
        if self._answers_invalid or request_id is not None:
            self._wire.send(words.error(request_id, {"code": code, "message": reason}))

    def _answered(self, request_id: RequestId, message: Mapping[str, Any]) -> None:
        future = self._waiting.get(own_id(request_id, self._waiting))
        if future is None or future.done():
            _log.debug("an answer without a request: id %r", request_id)
            return
        error, result = message.get("error"), message.get("result")
        if isinstance(error, dict):
            _fail(future, error_of(error))
        elif isinstance(result, dict):
            future.set_result(result)
        else:
            _fail(future, UnansweredError(Code.BadGateway, "the answer is neither a result nor an error"))

    def _notified(self, inbound: Inbound, method: str, params: dict[str, Any] | None) -> None:
        if self._on is None:
            return
        _, on_notify, intercept = self._on
        if method == CANCELLED:
            request_id = as_request_id((params or {}).get("requestId"))
            cancelled = self._served.get(request_id) if request_id is not None else None
            if cancelled is not None:
                cancelled.cancel()
        elif method == PROGRESS and not self._progressed(params or {}):
            return
        if not intercepted(intercept, method, params):
            self._tasks.begin(contained(on_notify(inbound, method, params)))

    def _progressed(self, params: dict[str, Any]) -> bool:
        """Tell who waits of progress; whether the notification is one."""
        token, total = as_request_id(params.get("progressToken")), params.get("total")
        fits = total is None or number(total) is not None
        if token is None or number(params.get("progress")) is None:
            return False
        if (report := self._progress.get(own_id(token, self._waiting))) is not None:
            self._tasks.begin(contained(report(params if fits else {**params, "total": None})))
        return fits and isinstance(params.get("message"), str | None)

    # --- what the peer asks for

    def _serve(
        self, inbound: Inbound, request_id: RequestId, method: str, params: dict[str, Any] | None
    ) -> asyncio.Task[None] | None:
        if self._on is None or request_id in self._served or len(self._served) >= MAX_REQUESTS:
            reason = (
                "its id is that of a request under way" if request_id in self._served else "too many requests at once"
            )
            inbound.wire.send(words.error(request_id, {"code": INVALID_REQUEST, "message": reason}))
            return None
        self._served[request_id] = inbound
        if method not in self._lasting:
            self._owed.add(request_id)
        inline = method in self._inline
        if inline:
            self._held = []
        task = inbound.task = asyncio.create_task(self._answer(inbound, self._on[0], method, params))
        task.add_done_callback(lambda _: self._served_to_the_end(request_id, inline=inline))
        self._tasks.keep(task)
        return task

    def _served_to_the_end(self, request_id: RequestId, *, inline: bool) -> None:
        """A request is over, even if it was cancelled before its handler began."""
        self._served.pop(request_id, None)
        self._owed.discard(request_id)
        if inline:
            self._release()
        self._go_on()

    async def _answer(self, inbound: Inbound, on_request: Answer, method: str, params: dict[str, Any] | None) -> None:
        try:
            answer = await answer_to(inbound, on_request, method, params)
        except asyncio.CancelledError:
            if self.why_closed or inbound.cancelled:
                raise  # no one waits for the answer
            answer = words.error(inbound.request_id, {"code": INTERNAL_ERROR, "message": "given up"})
        if not inbound.cancelled and not self.why_closed:
            inbound.wire.send(answer)
            await inbound.wire.drained()

    # --- common

    def _go_on(self) -> None:
        """Wait for the next answer that is owed where nothing comes any more, or end the conversation."""
        if not self._ending or self.why_closed:
            return
        if self._limit is not None:
            self._limit.cancel()
        patience_s = self._patience_s if self._owed or any(map(is_request, self._held or ())) else 0
        self._limit = asyncio.get_running_loop().call_later(patience_s, self.close, self._ending)

    def _fail_all(self, reason: str) -> None:
        for future in self._waiting.values():
            _fail(future, UnansweredError(Code.ConnectionError, reason))
        self._waiting.clear()

    def _abandon(self, request_id: RequestId, opts: CallOptions, reason: str, via: Transport) -> None:
        """Tell the peer that no one waits for this answer any more."""
        if opts.get("cancel_on_abandon", True) and not self.why_closed:
            params = {"requestId": request_id, "reason": reason}
            via.send(words.notification(CANCELLED, params, about=request_id))


def _fail(future: asyncio.Future[dict[str, Any]], error: MCPError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # the waiter may be gone
