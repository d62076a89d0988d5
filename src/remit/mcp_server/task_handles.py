"""Tasks of the protocol: calls whose clients are answered before they are made, and ask about them later.

since 2026-07-28   (the extension `io.modelcontextprotocol/tasks`) a call that waits for a person, or of which its
                   server makes a task, is answered with a task if its client declares the extension
2025-11-25         the client asks for a task with its call, of a tool that allows it

It is a call like any other; its client alone is told later. A task lives in this process: once it is gone, the client
makes the same call again, and meets the same question.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.clock import isoformat
from remit.ids import encode
from remit.jsonrpc.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    RELATED_TASK_META_KEY,
    TASKS,
    TASKS_VERSION,
    MCPError,
    MethodNotFoundError,
)
from remit.tools.peer import PeerError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from remit.clock import Clock
    from remit.mcp_server.peers import ClientPeer, Parked
    from remit.mcp_server.request import ClientRequest

POLL_MS: Final = 2_000
"""Milliseconds between two questions of a client about its task."""
TTL_MS: Final = 24 * 3_600 * 1_000
"""Milliseconds that a task is known, from its beginning."""
_MAX: Final = 10_000
_MAX_OF_ONE: Final = 1_000
"""Tasks of one principal, so that no one takes the places of all."""
_ID_BYTES: Final = 16
_REQUESTS: Final = ("tasks/get", "tasks/cancel")
_NEWER: Final = frozenset({*_REQUESTS, "tasks/update"})
_OLDER: Final = frozenset({*_REQUESTS, "tasks/result", "tasks/list"})
METHODS: Final = _NEWER | _OLDER
ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_OFFERED: Final[dict[str, Any]] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
"""The capability `tasks` of 2025-11-25."""
_log: Final = logging.getLogger("remit.mcp")


class TaskHandle(NamedTuple):
    """One task."""

    id: str
    owner: str
    """The principal that alone may ask about it."""
    parked: Parked
    created_at: int
    ttl_ms: int
    times: dict[str, int]
    """When each of its states, as a client was told of it, was seen first."""

    @property
    def status(self) -> str:
        """The word of the protocol for where it stands."""
        work = self.parked.work
        if work is None or not work.done():
            return "input_required" if self.parked.questions else "working"
        if work.cancelled():
            return "cancelled"
        return "completed" if work.exception() is None else "failed"


class TaskHandles:
    """The tasks of all clients."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._handles: dict[str, TaskHandle] = {}

    def take(self, parked: Parked, owner: str, ttl_ms: int = TTL_MS) -> TaskHandle:
        """Let a call whose work is under way be asked about from now on. Raises MCPError where there are too many."""
        own = [handle for handle in self._handles.values() if handle.owner == owner]
        if len(own) >= _MAX_OF_ONE or len(self._handles) >= _MAX:
            ended = next((handle for handle in own if handle.parked.work is None or handle.parked.work.done()), None)
            if ended is None:
                parked.give_up()
                raise MCPError(code=INTERNAL_ERROR, message="too many tasks are under way")
            self._forget(ended.id)
        now = self._clock.now()
        handle = TaskHandle(encode(int.from_bytes(os.urandom(_ID_BYTES))), owner, parked, now, min(ttl_ms, TTL_MS), {})
        self._handles[handle.id] = handle
        asyncio.get_running_loop().call_later(handle.ttl_ms / 1_000, self._forget, handle.id)
        return handle

    async def close(self) -> None:
        """Give up what is under way."""
        working = [handle.parked.work for handle in self._handles.values() if handle.parked.work is not None]
        for name in list(self._handles):
            self._forget(name)
        if working:
            await asyncio.wait(working)

    async def answer(self, request: ClientRequest, owner: str, peer: ClientPeer) -> dict[str, Any]:
        """The answer to a request about a task. Raises MCPError."""
        method = request.method
        if method not in (_NEWER if request.modern else _OLDER if request.version == TASKS_VERSION else ()):
            raise MethodNotFoundError(method)
        if request.modern:
            _check(request)
        if method == "tasks/list":
            return {"tasks": [self.seen(handle) for handle in self._handles.values() if handle.owner == owner]}
        handle = self._handles.get(str(request.params.get("taskId")))
        if handle is None or handle.owner != owner:
            raise MCPError(INVALID_PARAMS, "there is no such task, or it has expired: make the call again")
        match method:
            case "tasks/result":
                return await _result(handle, peer)
            case "tasks/update":
                responses = request.params.get("inputResponses")
                handle.parked.answered(responses if isinstance(responses, Mapping) else {})
                return {}
            case "tasks/cancel":
                return await self._cancel(handle, modern=request.modern)
            case _:
                return self._detailed(handle) if request.modern else self.seen(handle)

    def followed(self, names: Sequence[object], request: ClientRequest, owner: str) -> list[TaskHandle]:
        """Those of these tasks that are the owner's. Raises MCPError for a client that does not take tasks."""
        _check(request)
        handles = [self._handles.get(name) for name in dict.fromkeys(map(str, names))]
        return [handle for handle in handles if handle is not None and handle.owner == owner]

    async def changes(self, handle: TaskHandle) -> AsyncIterator[dict[str, Any]]:
        """A task as it is now, and each time it changed, up to its end (2026-07-28)."""
        states: dict[str, Any] = {}
        while handle.status not in ENDED:
            change, state = handle.parked.change, self._detailed(handle)
            if state != states:
                states = state
                yield state
            else:
                await change.wait()
        yield self._detailed(handle)

    def seen(self, handle: TaskHandle, *, modern: bool = False) -> dict[str, Any]:
        """A task as clients see it."""
        status, message = handle.status, handle.parked.status
        at = handle.times.setdefault(f"{status} {message}", self._clock.now() if handle.times else handle.created_at)
        return {
            "taskId": handle.id,
            "status": status,
            **({"statusMessage": message} if message else {}),
            "createdAt": isoformat(handle.created_at),
            "lastUpdatedAt": isoformat(at),
            "ttlMs" if modern else "ttl": handle.ttl_ms,
            "pollIntervalMs" if modern else "pollInterval": POLL_MS,
        }

    def _detailed(self, handle: TaskHandle) -> dict[str, Any]:
        """The same with its result, or what it needs to go on (2026-07-28)."""
        task, work = self.seen(handle, modern=True), handle.parked.work
        match task["status"]:
            case "input_required":
                return {**task, "inputRequests": dict(handle.parked.questions)}
            case "completed" if work is not None:
                return {**task, "result": work.result()}
            case "failed" if work is not None:
                return {**task, "error": _error(work.exception())}
            case _:
                return task

    async def _cancel(self, handle: TaskHandle, *, modern: bool) -> dict[str, Any]:
        work = handle.parked.work
        if not modern and (work is None or work.done()):
            raise MCPError(INVALID_PARAMS, f"the task is {handle.status} already")
        handle.parked.give_up()
        if modern or work is None:
            return {}
        await asyncio.wait([work])
        return self.seen(handle)

    def _forget(self, name: str) -> None:
        handle = self._handles.pop(name, None)
        if handle is not None:
            handle.parked.give_up()


def _check(request: ClientRequest) -> None:
    if not request.takes_tasks:
        required: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", required)


def created(handle: TaskHandle, handles: TaskHandles, *, modern: bool) -> dict[str, Any]:
    """The answer to a call in the place of its result."""
    task = handles.seen(handle, modern=modern)
    return {"resultType": "task", **task} if modern else {"task": task}


def announced(answer: dict[str, Any], method: str, *, wrapped: bool) -> dict[str, Any]:
    """The answer to a handshake with the tasks that there are; where a server is `wrapped`, the older ones are its."""
    offered = answer.get("capabilities")
    if not isinstance(offered, dict):
        return answer
    if method == "server/discover":
        extensions = offered.get("extensions")
        extensions = {**(extensions if isinstance(extensions, dict) else {}), TASKS: {}}
        return {**answer, "capabilities": {**offered, "extensions": extensions}}
    if wrapped or answer.get("protocolVersion") != TASKS_VERSION:
        return answer
    return {**answer, "capabilities": {**offered, "tasks": _OFFERED}}


async def _result(handle: TaskHandle, peer: ClientPeer) -> dict[str, Any]:
    """The result of a call once it is there; what it asks meanwhile is put to the client that waits for it."""
    parked, related = handle.parked, {RELATED_TASK_META_KEY: {"taskId": handle.id}}
    while parked.work is not None and not parked.work.done():
        await parked.turn()
        questions = {key: _about(question, related) for key, question in parked.questions.items()}
        if questions:
            try:
                parked.answered(await peer.ask(questions))
            except PeerError as error:
                parked.refuse(error)
    if handle.status == "cancelled" or parked.work is None:
        raise MCPError(INVALID_PARAMS, "the task was cancelled")
    if (failure := parked.work.exception()) is not None:
        raise MCPError(**_error(failure))
    result = parked.work.result()
    return {**result, "_meta": {**result.get("_meta", {}), **related}}


def _about(question: Mapping[str, Any], related: Mapping[str, Any]) -> dict[str, Any]:
    params = question.get("params") or {}
    return {**question, "params": {**params, "_meta": {**params.get("_meta", {}), **related}}}


def _error(error: BaseException | None) -> dict[str, Any]:
    """The error of JSON-RPC in which a call ended."""
    if isinstance(error, MCPError):
        return error.told
    _log.error("a call that was answered with a task broke off", exc_info=error)
    return {"code": INTERNAL_ERROR, "message": "the call broke off"}


def ttl_of(params: Mapping[str, Any]) -> int:
    """Milliseconds that a client wants its task to be known (2025-11-25)."""
    task = params.get("task")
    ttl = task.get("ttl") if isinstance(task, Mapping) else None
    return ttl if isinstance(ttl, int) and not isinstance(ttl, bool) and ttl > 0 else TTL_MS


def begun(work: Coroutine[Any, Any, dict[str, Any]], parked: Parked) -> Parked:
    """The call, under way, its client answered with a task."""
    parked.defer("")
    parked.begin(work)
    return parked
