"""The client as the peer of its calls: asked back, and told, in the way its era of the protocol has for it.

before 2026-07-28   a request of ours while its own is open
since               its request is answered with what we need to know; it comes again with the answers, and the call,
                    which meanwhile waits, goes on
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from remit.jsonrpc.message import PROGRESS
from remit.jsonrpc.protocol import CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY, MCPError
from remit.tasks import Tasks
from remit.tools.peer import CAPABILITY, PeerError, Requests
from remit.tools.remote import BETWEEN_US

if TYPE_CHECKING:
    from remit.http.access import Assertion
    from remit.mcp_server.request import ClientRequest

_PROGRESS: Final = "progressToken"
_PASSED: Final = (CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY)


class ClientPeer:
    """The client behind one request."""

    def __init__(self, request: ClientRequest) -> None:
        self.request = request
        self.results: dict[str, Mapping[str, Any]] = {}
        """The results that servers gave, by the call's invocation."""
        self._telling = Tasks()

    @property
    def meta(self) -> Mapping[str, Any]:
        meta = self.request.params.get("_meta")
        passed = {key: meta[key] for key in _PASSED if key in meta} if isinstance(meta, Mapping) else {}
        if self.request.program is None and not self.request.declared:
            return passed
        return {CLIENT_CAPABILITIES_META_KEY: self.request.declared, **passed}  # or as declared at its handshake

    @property
    def attached(self) -> Mapping[str, Any]:
        meta = self.request.params.get("_meta")
        if not isinstance(meta, Mapping):
            return {}
        return {key: value for key, value in meta.items() if key != _PROGRESS and not key.startswith(BETWEEN_US)}

    @property
    def assertion(self) -> Assertion | None:
        return self.request.caller.access.assertion

    def given(self, invocation_id: str, result: Mapping[str, Any]) -> None:
        self.results[invocation_id] = result

    async def ask(self, requests: Requests) -> dict[str, dict[str, Any]]:
        try:
            return {
                key: await self.request.channel.send_raw_request(request["method"], request["params"])
                for key, request in requests.items()
            }
        except MCPError as error:
            raise PeerError(error.message) from error

    def can(self, method: str) -> bool:
        if method not in CAPABILITY:
            return not self.request.modern  # it answers a method of the server's own for itself
        return self.request.can(CAPABILITY[method])

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        channel = self.request.channel
        self._telling.begin(channel.progress(params) if method == PROGRESS else channel.notify(method, params))

    @property
    def hears_late(self) -> bool:
        """Return whether an answer to a question of ours may come when the request itself has been answered."""
        return not self.request.modern

    @property
    def deferred(self) -> bool:
        return False

    def defer(self, message: str) -> bool:  # noqa: ARG002 - of the port
        return False

    def decide(self, words: str) -> None:
        """Take how a question about the call ended; unused if the client waits for the result."""

    def report(self, done: float, total: float | None, message: str) -> None:
        """Tell how far a call is, in the order of all that it is told."""
        self.tell(PROGRESS, {"progress": done, "total": total, "message": message or None})

    async def told(self) -> None:
        """Wait until all is passed on: nothing may come after the answer."""
        await self._telling.ended()


class Parked:
    """A call that waits for its client to come again with answers."""

    def __init__(self, peer: ClientPeer, *, takes_tasks: bool = False) -> None:
        self.peer = peer
        self.work: asyncio.Task[dict[str, Any]] | None = None
        self.questions: dict[str, dict[str, Any]] = {}
        self.deferred = False
        """Whether its request is answered with a task: what belongs to the request reaches its client no more."""
        self._decision = ""
        self._message = ""
        self._takes_tasks = takes_tasks
        self._times = 0
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._change = asyncio.Event()
        self._turn = asyncio.Event()
        """Set while the client is to be answered: something is asked, or the work is done."""

    def begin(self, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        """Make the call."""
        self.work = asyncio.create_task(work)
        self.work.add_done_callback(lambda _: self._turn.set())
        self.work.add_done_callback(lambda _: self._changed())

    @property
    def meta(self) -> Mapping[str, Any]:
        return self.peer.meta

    @property
    def attached(self) -> Mapping[str, Any]:
        return self.peer.attached

    @property
    def results(self) -> Mapping[str, Mapping[str, Any]]:
        """The results that servers gave, by the call's invocation."""
        return self.peer.results

    @property
    def assertion(self) -> Assertion | None:
        return self.peer.assertion

    def given(self, invocation_id: str, result: Mapping[str, Any]) -> None:
        self.peer.given(invocation_id, result)

    def can(self, method: str) -> bool:
        return self.peer.can(method)

    async def ask(self, requests: Requests) -> dict[str, dict[str, Any]]:
        loop = asyncio.get_running_loop()
        futures: dict[str, asyncio.Future[dict[str, Any]]] = {key: loop.create_future() for key in requests}
        self._times += 1
        names = {self._free(key): key for key in requests}
        self._answers.update({name: futures[key] for name, key in names.items()})
        self.questions.update({name: dict(requests[key]) for name, key in names.items()})
        self._turn.set()
        self._changed()
        try:
            return {key: await future for key, future in futures.items()}
        finally:
            for name in names:
                del self._answers[name]
                self.questions.pop(name, None)  # the tool gave up before the client came again
            self._settle()

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        if not self.deferred:
            self.peer.tell(method, params)

    def defer(self, message: str) -> bool:
        if self._takes_tasks:
            self.deferred, self._message = True, message or self._message
            self._turn.set()
            self._changed()
        return self._takes_tasks

    def decide(self, words: str) -> None:
        """Tell from now on how a question about the call ended, and no more that it waits for that."""
        self._decision, self._message = words, ""
        self._changed()

    def report(self, done: float, total: float | None, message: str) -> None:
        """Tell how far the call is."""
        if not self.deferred:
            self.peer.report(done, total, message)
        elif message:
            self._message = message
            self._changed()

    @property
    def hears_late(self) -> bool:
        """The work waits for the answers: they come with the request itself."""
        return False

    def take(self, responses: Mapping[str, Any], peer: ClientPeer) -> None:
        """Take the answers that the client brought with a request; what it did not answer stays asked."""
        self.peer = peer
        self.answered(responses)

    def refuse(self, error: PeerError) -> None:
        """The client answers none of what it is asked."""
        for key in [key for key in self.questions if not self._answers[key].done()]:
            del self.questions[key]
            self._answers[key].set_exception(error)
        self._settle()

    def answered(self, responses: Mapping[str, Any]) -> None:
        """Take answers of the client."""
        for key, answer in responses.items():
            if key in self.questions and isinstance(answer, dict):
                del self.questions[key]
                if not self._answers[key].done():  # else the call gives up at this moment
                    self._answers[key].set_result(answer)
        self._settle()

    def _free(self, key: str) -> str:
        """The key, or one like it that no other question has; of a task, none has ever had it."""
        if self.deferred:
            return f"{key}.{self._times}"
        return key if key not in self._answers else self._free(f"{key}+")

    def _settle(self) -> None:
        """With nothing left to ask, the client waits for the result."""
        if not self.questions:
            self._turn.clear()
        self._changed()

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    @property
    def change(self) -> asyncio.Event:
        """Return what is set once it stands elsewhere than now."""
        return self._change

    @property
    def request(self) -> ClientRequest:
        """The one that is open now."""
        return self.peer.request

    def give_up(self) -> None:
        """The client will not come again."""
        if self.work is not None:
            self.work.cancel()

    @property
    def status(self) -> str:
        """Return what it waits for, or how far it is, in words."""
        return "; ".join(filter(None, (self._decision, self._message)))

    async def turn(self) -> None:
        """Wait until there is something to ask, or the work is done."""
        while self.work is not None and not self.work.done() and not self.questions:
            self._turn.clear()
            await self._turn.wait()

    async def step(self) -> dict[str, Any] | None:
        """The call's result, or None once there is something to ask, or a task is the answer."""
        if self.work is None:
            msg = "a parked call has work"
            raise AssertionError(msg)
        try:
            if not self.work.done() and not self.deferred:
                await self._turn.wait()
        except asyncio.CancelledError:
            self.work.cancel()
            raise
        return await self.work if self.work.done() else None
