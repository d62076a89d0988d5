"""The one client of a process on stdio, as the servers behind it know it: by what it declared, and outside of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from remit.jsonrpc.message import UnreadableError, read
from remit.jsonrpc.protocol import CLIENT_CAPABILITIES_META_KEY, MCPError
from remit.tasks import Tasks
from remit.tools.peer import CAPABILITY, PeerError, Requests

if TYPE_CHECKING:
    from remit.jsonrpc.dispatcher import Dispatcher

READY_S: Final = 3.0
"""Seconds that a question waits for a client that is not served yet: some servers list no tools before its answer."""
_ROOTS_CHANGED: Final = "notifications/roots/list_changed"


class OnlyClient:
    """Is told by its wire what it says first, and is asked back over it once it is served."""

    meta: Mapping[str, Any] = {}
    attached: Mapping[str, Any] = {}
    deferred = False
    assertion = None

    def __init__(self, conversation: Dispatcher) -> None:
        self._conversation = conversation
        self._declared: Mapping[str, Any] | None = None
        self._spoke, self._served = asyncio.Event(), asyncio.Event()
        self._gone = self._refused = False
        """Return whether it left, and whether a question was given up before it was served."""
        self._listeners: list[Callable[[], None]] = []
        self._telling = Tasks()

    # --- the wire's side

    def hears(self, line: bytes) -> None:
        """Read what it declares from its first request, in whichever era."""
        if self._spoke.is_set():
            return
        try:
            message = read(line)
        except UnreadableError:
            return  # the dispatcher says so
        params = message.get("params") if isinstance(message, dict) and "id" in message else None
        if isinstance(params, dict):
            meta = params.get("_meta")
            given = params.get("capabilities") if message.get("method") == "initialize" else None
            given = meta.get(CLIENT_CAPABILITIES_META_KEY) if given is None and isinstance(meta, dict) else given
            self._declared = given if isinstance(given, dict) else None
            self._spoke.set()

    def left(self) -> None:
        """It says nothing any more."""
        self._gone = True
        self._spoke.set()
        self._served.set()

    def notified(self, method: str) -> None:
        """Take a notification of it (before 2026-07-28)."""
        if method == "notifications/initialized":
            self._served.set()
        if method == _ROOTS_CHANGED or (method == "notifications/initialized" and self._refused):
            for listener in self._listeners:
                listener()

    # --- the servers' side

    async def declared(self) -> Mapping[str, Any] | None:
        await self._spoke.wait()
        return self._declared

    async def served(self) -> bool:
        try:
            async with asyncio.timeout(READY_S):
                await self._served.wait()
        except TimeoutError:
            self._refused = True
        return self._served.is_set()

    def subscribe(self, changed: Callable[[], None]) -> None:
        self._listeners.append(changed)

    def given(self, invocation_id: str, result: Mapping[str, Any]) -> None:
        """Return nothing: it is asked within calls alone."""

    def can(self, method: str) -> bool:
        declared = CAPABILITY[method] in (self._declared or {}) if method in CAPABILITY else self._conversation.may_ask
        return self._served.is_set() and not self._gone and declared

    def defer(self, message: str) -> bool:  # noqa: ARG002 - of the port
        return False

    async def ask(self, requests: Requests) -> dict[str, dict[str, Any]]:
        try:
            return {
                key: await self._conversation.send_raw_request(request["method"], request["params"])
                for key, request in requests.items()
            }
        except MCPError as error:
            raise PeerError(error.message) from error

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        if self._served.is_set():
            self._telling.begin(self._conversation.notify(method, params))
