"""A call of a server's tool, to its end: where the server makes a task of it, the task is followed.

To the gateway it stays one call, with the result that the server gives in the end. A caller who asks about its own call
meanwhile is told what the server says of the task.

    2025-11-25         we ask for a task (`task`) of a tool that demands it, or allows it to a caller who asked for one
    since 2026-07-28   the server decides
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from remit.codes import Code
from remit.errors import ProviderError
from remit.jsonrpc.message import PROGRESS, REPAIRED
from remit.jsonrpc.protocol import (
    MCP_NAME_HEADER,
    MCPError,
    UnansweredError,
    is_modern,
)

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.providers.mcp.answers import ServerAnswers
    from remit.providers.mcp.session import McpSession
    from remit.tools.provider import CallContext

_REPORTED: Final = frozenset({"progressToken", "progress", "total", "message"})
_POLL_S: Final = 1.0
_SHORTEST_S: Final = 0.02
_LONGEST_S: Final = 30.0
_CANCEL_S: Final = 2.0
"""Seconds that a server has to hear that its task is given up."""
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_log: Final = logging.getLogger("remit.mcp")


class OpenToolCall:
    """One call under way."""

    def __init__(self, session: McpSession, answers: ServerAnswers, ctx: CallContext, clock: Clock) -> None:
        self._session = session
        self._answers = answers
        self._ctx = ctx
        self._clock = clock
        self._modern = is_modern(session.protocol_version)
        self._polls = 0

    async def result(self, params: Mapping[str, Any], support: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """The server's result; `support` is the tool's for tasks. Raises MCPError."""
        older = not self._modern and self._makes_task(support)
        call_params = {**params, "task": {}} if older else params
        raw = await self._session.settle(
            "tools/call", call_params, self._answers, self._ctx.peer, headers=headers, progress=self._moves
        )
        task = raw.get("task") if older else raw if raw.get("resultType") == "task" else None
        if task is None:
            return raw
        if not isinstance(task, dict) or not isinstance(task.get("taskId"), str):
            raise UnansweredError(Code.BadGateway, "the server made a task of the call, and does not name it")
        with self._answers.calling(self._ctx.peer, self._ctx.log):
            try:
                return await self._followed(task["taskId"], task)
            except asyncio.CancelledError:
                await self._give_up(task["taskId"])
                raise

    def _moves(self, params: Mapping[str, Any]) -> None:
        """Pass on what the server reports, to a caller who hears it as it came; the call's time begins again."""
        self._ctx.moves()
        peer, message = self._ctx.peer, params.get("message")
        if peer is not None and not peer.deferred and params.keys() - _REPORTED:
            peer.tell(PROGRESS, params)
        else:
            self._ctx.progress(params["progress"], params.get("total"), message if isinstance(message, str) else "")

    def _makes_task(self, support: str) -> bool:
        """Return whether we ask for a task (2025-11-25)."""
        offered = self._session.introduction.get("capabilities")
        tasks = offered.get("tasks") if isinstance(offered, Mapping) else None
        requests = tasks.get("requests") if isinstance(tasks, Mapping) else None
        tools = requests.get("tools") if isinstance(requests, Mapping) else None
        if not isinstance(tools, Mapping) or "call" not in tools:
            return False
        peer = self._ctx.peer
        return support == "required" or (support == "optional" and peer is not None and peer.deferred)

    async def _followed(self, name: str, task: dict[str, Any]) -> dict[str, Any]:
        answered: set[str] = set()
        while task.get("status") not in _ENDED:
            self._tell(task)
            if task.get("status") == "input_required":
                if not self._modern:
                    break  # it asks those who wait for the result
                await self._answer(name, task, answered)
            await self._clock.sleep(_interval_s(task))
            task = await self._ask("tasks/get", name)
        if not self._modern:
            return await self._ask("tasks/result", name)
        return _end_of(task)

    def _tell(self, task: Mapping[str, Any]) -> None:
        """Tell the caller that it takes long, and how far it is."""
        message, peer = task.get("statusMessage"), self._ctx.peer
        words = message if isinstance(message, str) else ""
        if peer is not None:
            peer.defer(words)
        self._polls += 1
        self._ctx.progress(self._polls, None, words)

    async def _answer(self, name: str, task: Mapping[str, Any], answered: set[str]) -> None:
        """Answer what the task needs to go on, each question once."""
        questions = task.get("inputRequests")
        fresh = (
            {key: each for key, each in questions.items() if key not in answered}
            if isinstance(questions, Mapping)
            else {}
        )
        if fresh:
            answered.update(fresh)
            responses = await self._answers.all(fresh, self._ctx.peer)
            await self._ask("tasks/update", name, inputResponses=responses)

    async def _ask(self, method: str, name: str, **params: Any) -> dict[str, Any]:
        opts: Any = {"headers": {MCP_NAME_HEADER: name}} if self._modern else None
        return await self._session.ask(method, {"taskId": name, **params}, opts, self._ctx.peer)

    async def _give_up(self, name: str) -> None:
        """Tell the server that no one waits for its task any more."""
        try:
            async with asyncio.timeout(_CANCEL_S):
                await self._ask("tasks/cancel", name)
        except (MCPError, TimeoutError) as error:
            _log.debug("the task %s was not cancelled: %r", name, error)


def _end_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a task that has ended (2026-07-28). Raises MCPError."""
    result, error = task.get("result"), task.get("error")
    if task["status"] == "completed" and isinstance(result, dict):
        meta, outer = result.get("_meta"), task.get("_meta")
        repaired = outer.get(REPAIRED) if isinstance(outer, dict) else None
        return {**result, "_meta": {**(meta or {}), REPAIRED: repaired}} if repaired else result
    if task["status"] == "failed" and isinstance(error, dict) and isinstance(error.get("code"), int):
        raise MCPError(error["code"], str(error.get("message", "")), error.get("data"))
    reason = f"the server's task is {task['status']}, without a result"
    raise (
        UnansweredError(Code.BadGateway, reason) if task["status"] == "completed" else ProviderError(reason, cause=None)
    )


def _interval_s(task: Mapping[str, Any]) -> float:
    """Seconds until a task may be asked about again."""
    interval = task.get("pollIntervalMs", task.get("pollInterval"))
    seconds = interval / 1_000 if isinstance(interval, int | float) and not isinstance(interval, bool) else _POLL_S
    return min(max(seconds, _SHORTEST_S), _LONGEST_S)
