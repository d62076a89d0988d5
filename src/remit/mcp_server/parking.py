"""Calls that wait for their client to come again with what it was asked (2026-07-28)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from remit.ids import new_id
from remit.jsonrpc.protocol import INTERNAL_ERROR, INVALID_PARAMS, MCPError
from remit.mcp_server.peers import ClientPeer, Parked
from remit.mcp_server.task_handles import TaskHandles, created

if TYPE_CHECKING:
    from remit.mcp_server.request import ClientRequest

PARKED_S: Final = 600.0
"""Seconds a call waits for its client to come again with what it was asked."""
_MAX_PARKED: Final = 1_000
_MAX_OF_ONE: Final = 100
"""Calls of one principal that wait, so that no one takes the places of all."""
_RESUMABLE: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that may come again with answers: those whose state the SDK seals."""

Work = Callable[[ClientPeer | Parked], Coroutine[Any, Any, dict[str, Any]]]


class Parking:
    """Work for clients that can be asked back, and what of it waits."""

    def __init__(self, tasks: TaskHandles) -> None:
        """Work that takes long goes on among `tasks`, where its client takes one."""
        self._tasks = tasks
        self._parked: dict[str, tuple[Parked, asyncio.TimerHandle]] = {}

    async def talk(self, request: ClientRequest, work: Work, owner: str) -> dict[str, Any]:
        """Do the work for a client that can be asked back meanwhile, each era in its way; `owner` is its principal."""
        peer = ClientPeer(request)
        try:
            if not request.modern or request.method not in _RESUMABLE:
                return await work(peer)
            return await self._step(self._resumed(request.params, peer) or _begun(peer, work), owner)
        finally:
            await peer.told()

    async def close(self) -> None:
        """Give up what waits."""
        for parked, timer in self._parked.values():
            timer.cancel()
            parked.give_up()
        ending = [parked.work for parked, _ in self._parked.values() if parked.work]
        self._parked.clear()
        if ending:
            await asyncio.wait(ending)

    def _resumed(self, params: Mapping[str, Any], peer: ClientPeer) -> Parked | None:
        """The work that a repeated request continues with; its state was sealed by us and for this very request.

        A state is good for once: a request that brings an old one is not taken for a new call, which might do
        what was done a second time.
        """
        state, responses = params.get("requestState"), params.get("inputResponses")
        if not isinstance(state, str):
            return None
        if state not in self._parked:
            raise MCPError(code=INVALID_PARAMS, message="this requestState was used, or given up: call again")
        parked, timer = self._parked.pop(state)
        timer.cancel()
        parked.take(responses if isinstance(responses, Mapping) else {}, peer)
        return parked

    async def _step(self, parked: Parked, owner: str) -> dict[str, Any]:
        """The result, or what the client has to find out before it comes again, or a task to ask about."""
        result = await parked.step()
        if result is not None:
            return result
        if parked.deferred:
            return created(self._tasks.take(parked, owner), self._tasks, modern=True)
        who = parked.peer.request.caller.access.principal
        own = sum(other.peer.request.caller.access.principal == who for other, _ in self._parked.values())
        if own >= _MAX_OF_ONE or len(self._parked) >= _MAX_PARKED:
            parked.give_up()
            raise MCPError(code=INTERNAL_ERROR, message="too many calls wait for answers")
        state = new_id("p")
        timer = asyncio.get_running_loop().call_later(PARKED_S, self._forget, state)
        self._parked[state] = parked, timer
        return {"resultType": "input_required", "inputRequests": dict(parked.questions), "requestState": state}

    def _forget(self, state: str) -> None:
        """The client did not come."""
        parked, _ = self._parked.pop(state)
        parked.give_up()


def _begun(peer: ClientPeer, work: Work) -> Parked:
    parked = Parked(peer, takes_tasks=peer.request.method == "tools/call" and peer.request.takes_tasks)
    parked.begin(work(parked))
    return parked
