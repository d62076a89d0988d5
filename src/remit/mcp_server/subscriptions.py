"""The streams that clients of 2026-07-28 listen to: they are told of lists, resources and tasks, as far as they asked.

The acknowledgement comes first, and each message names the request. What is told while no one listens is not kept: a
client that listens again asks for what it depends on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.jsonrpc.protocol import INTERNAL_ERROR, INVALID_PARAMS, SUBSCRIPTION_ID_META_KEY, MCPError
from remit.tasks import Tasks

if TYPE_CHECKING:
    from remit.mcp_server.request import ClientRequest
    from remit.mcp_server.task_handles import TaskHandle, TaskHandles

RESOURCE_UPDATED: Final = "notifications/resources/updated"
_MAX_STREAMS: Final = 1_024
_MAX_WAITING: Final = 1_024
"""Messages that wait for a client that does not read; with more, its stream ends."""


class _Wishes(msgspec.Struct, rename="camel", omit_defaults=True):
    """The changes that a client wants to hear of."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
    task_ids: list[Any] | None = None

    def hold(self, method: str, params: Mapping[str, Any]) -> bool:
        """Return whether they name this change."""
        wanted = {
            "notifications/tools/list_changed": self.tools_list_changed,
            "notifications/prompts/list_changed": self.prompts_list_changed,
            "notifications/resources/list_changed": self.resources_list_changed,
            RESOURCE_UPDATED: params.get("uri") in (self.resource_subscriptions or ()),
        }
        return wanted.get(method) is True


class _Stream:
    """The messages that one client still has to be told."""

    def __init__(self, wishes: _Wishes) -> None:
        self.wishes = wishes
        self._waiting: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._change = asyncio.Event()
        self._over = False

    def take(self, method: str, params: Mapping[str, Any]) -> None:
        if len(self._waiting) >= _MAX_WAITING:
            self.close()
        elif not self._over:
            self._waiting.append((method, params))
            self._change.set()

    def close(self) -> None:
        self._over = True
        self._change.set()

    async def messages(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if self._over:
                return
            self._change.clear()
            await self._change.wait()


class ListenStreams:
    """Serves these streams."""

    def __init__(self, tasks: TaskHandles, owner: Callable[[ClientRequest], str]) -> None:
        self._tasks = tasks
        self._owner = owner
        self._streams: set[_Stream] = set()

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell of a change those who want to hear of it."""
        for stream in self._streams:
            if stream.wishes.hold(method, params):
                stream.take(method, params)

    def close(self) -> None:
        """End all streams, once what waits is told."""
        for stream in self._streams:
            stream.close()

    async def serve(self, request: ClientRequest) -> dict[str, Any]:
        """Serve one stream to its end. Raises MCPError, also for a client that names tasks and does not take any."""
        wishes = _wishes(request)
        handles: list[TaskHandle] = []
        if wishes.task_ids is not None:
            handles = self._tasks.followed(wishes.task_ids, request, self._owner(request))
            wishes.task_ids = [handle.id for handle in handles]
        if len(self._streams) >= _MAX_STREAMS:
            raise MCPError(INTERNAL_ERROR, "too many clients listen")
        about = {"_meta": {SUBSCRIPTION_ID_META_KEY: request.channel.request_id}}
        stream, telling = _Stream(wishes), Tasks()
        self._streams.add(stream)
        try:
            honored = {"notifications": msgspec.to_builtins(wishes)}
            await request.channel.notify("notifications/subscriptions/acknowledged", {**honored, **about})
            for handle in handles:
                telling.begin(self._follow(request, handle, about))
            async for method, params in stream.messages():
                await request.channel.notify(method, {**params, **about})
        finally:
            self._streams.discard(stream)
            telling.cancel()
            await telling.ended()
        return about

    async def _follow(self, request: ClientRequest, handle: TaskHandle, about: Mapping[str, Any]) -> None:
        """Tell of a task as it is now, and each time that it changes, as `tasks/get` would."""
        async for change in self._tasks.changes(handle):
            await request.channel.notify("notifications/tasks", {**change, **about})


def _wishes(request: ClientRequest) -> _Wishes:
    """Those of a request, without the changes that it names and does not want."""
    try:
        wishes = msgspec.convert(request.params.get("notifications"), _Wishes)
    except msgspec.ValidationError as error:
        raise MCPError(INVALID_PARAMS, f"Invalid request parameters: {error}") from None
    return _Wishes(*((getattr(wishes, name) or None) for name in wishes.__struct_fields__))
