"""The streams that clients of 2026-07-28 listen to: the SDK tells of lists and resources, we of tasks (`taskIds`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from mcp_types import SubscriptionsAcknowledgedNotification

from remit.jsonrpc.protocol import SUBSCRIPTION_ID_META_KEY
from remit.mcp_server.request import ClientRequest
from remit.tasks import Tasks

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp.server.subscriptions import ListenHandler
    from mcp_types import ServerNotification, SubscriptionsListenRequestParams, SubscriptionsListenResult

    from remit.mcp_server.task_handles import TaskHandle, TaskHandles

_CHANGED: Final = "notifications/tasks"


class Listening:
    """Serves these streams; those that name no tasks are the SDK's alone."""

    def __init__(self, lists: ListenHandler, tasks: TaskHandles, owner: Callable[[ClientRequest], str]) -> None:
        """`owner` is the principal of a request: it hears of its own tasks."""
        self._lists = lists
        self._tasks = tasks
        self._owner = owner

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream. Raises MCPError for a client that names tasks, and does not take any."""
        names = (params.notifications.model_extra or {}).get("taskIds")
        if not isinstance(names, list) or not names:
            return await self._lists(ctx, params)
        request = ClientRequest.of(ctx)
        handles = self._tasks.followed(names, request, self._owner(request))
        telling = Tasks()
        session = _Stream(ctx.session, handles, lambda handle: telling.begin(self._tell(request, ctx, handle)))
        try:
            return await self._lists(replace(ctx, session=cast("ServerSession", session)), params)  # it only tells
        finally:
            telling.cancel()
            await telling.ended()

    async def _tell(self, request: ClientRequest, ctx: ServerRequestContext[Any, Any], handle: TaskHandle) -> None:
        """Tell of a task as it is now, and each time that it changes, as `tasks/get` would."""
        async for seen in self._tasks.changes(handle):
            await request.channel.notify(_CHANGED, {**seen, "_meta": {SUBSCRIPTION_ID_META_KEY: ctx.request_id}})


class _Stream:
    """The session of a stream, whose acknowledgement names tasks as well; they are told of behind it."""

    def __init__(self, session: ServerSession, handles: list[TaskHandle], begin: Callable[[TaskHandle], None]) -> None:
        self._session = session
        self._handles = handles
        self._begin = begin

    async def send_notification(
        self, notification: ServerNotification, related_request_id: int | str | None = None
    ) -> None:
        """The SDK's."""
        if not isinstance(notification, SubscriptionsAcknowledgedNotification):
            await self._session.send_notification(notification, related_request_id)
            return
        honored = notification.params.notifications.model_copy(
            update={"taskIds": [handle.id for handle in self._handles]}
        )
        params = notification.params.model_copy(update={"notifications": honored})
        await self._session.send_notification(notification.model_copy(update={"params": params}), related_request_id)
        for handle in self._handles:
            self._begin(handle)
