"""Calls that wait for their client to come again with what it was asked (2026-07-28)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
_RESUMABLE: Final = {
    "tools/call": ("name", "arguments"),
    "prompts/get": ("name", "arguments"),
    "resources/read": ("uri",),
}
"""Requests that may come again with answers, with the members that they are then recognized by."""
_STATE_BYTES: Final = 24

Work = Callable[[ClientPeer | Parked], Coroutine[Any, Any, dict[str, Any]]]


class _Place(NamedTuple):
    """A call that waits."""

    parked: Parked
    timer: asyncio.TimerHandle
    request: tuple[Any, ...]
    """The request that may continue it."""


class Parking:
    """Work for clients that can be asked back, and what of it waits."""

    def __init__(self, tasks: TaskHandles) -> None:
        self._tasks = tasks
        self._parked: dict[str, _Place] = {}

    async def talk(self, request: ClientRequest, work: Work, owner: str) -> dict[str, Any]:
        """Do the work for a client that can be asked back meanwhile, each era in its way; `owner` is its principal."""
        peer = ClientPeer(request)
        try:
            if not request.modern or request.method not in _RESUMABLE:
                return await work(peer)
            return await self._step(self._resumed(request, peer, owner) or _begun(peer, work), owner)
        finally:
            await peer.told()

    async def close(self) -> None:
        """Give up what waits."""
        for place in self._parked.values():
            place.timer.cancel()
            place.parked.give_up()
        ending = [place.parked.work for place in self._parked.values() if place.parked.work]
        self._parked.clear()
        if ending:
            await asyncio.wait(ending)

    def _resumed(self, request: ClientRequest, peer: ClientPeer, owner: str) -> Parked | None:
        """The work that a repeated request continues with; its state cannot be guessed, and is for this very request.

        A state is good for once: a request that brings an old one is not taken for a new call, which might do
        what was done a second time.
        """
        state, responses = request.params.get("requestState"), request.params.get("inputResponses")
        if state is None:
            return None
        place = self._parked.get(state) if isinstance(state, str) else None
        if place is None or place.request != _recognized(request, owner):
            why = "this requestState was used, or given up, or is of another request: call again"
            raise MCPError(code=INVALID_PARAMS, message=why)
        del self._parked[state]
        place.timer.cancel()
        place.parked.take(responses if isinstance(responses, Mapping) else {}, peer)
        return place.parked

    async def _step(self, parked: Parked, owner: str) -> dict[str, Any]:
        """The result, or what the client has to find out before it comes again, or a task to ask about."""
        result = await parked.step()
        if result is not None:
            return result
        if parked.deferred:
            return created(self._tasks.take(parked, owner), self._tasks, modern=True)
        request = _recognized(parked.request, owner)
        own = sum(place.request[0] == owner for place in self._parked.values())
        if own >= _MAX_OF_ONE or len(self._parked) >= _MAX_PARKED:
            parked.give_up()
            raise MCPError(code=INTERNAL_ERROR, message="too many calls wait for answers")
        state = os.urandom(_STATE_BYTES).hex()  # it must not be guessable
        timer = asyncio.get_running_loop().call_later(PARKED_S, self._forget, state)
        self._parked[state] = _Place(parked, timer, request)
        return {"resultType": "input_required", "inputRequests": dict(parked.questions), "requestState": state}

    def _forget(self, state: str) -> None:
        """The client did not come."""
        self._parked.pop(state).parked.give_up()


def _recognized(request: ClientRequest, owner: str) -> tuple[Any, ...]:
    """The parts that a request has to have in common with the one that it repeats."""
    members = _RESUMABLE[request.method]
    return owner, request.method, *(request.params.get(member) or None for member in members)


def _begun(peer: ClientPeer, work: Work) -> Parked:
    parked = Parked(peer, takes_tasks=peer.request.method == "tools/call" and peer.request.takes_tasks)
    parked.begin(work(parked))
    return parked
