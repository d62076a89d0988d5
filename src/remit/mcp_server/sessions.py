"""Sessions of clients over HTTP before 2026-07-28: each a conversation, whose messages come in many requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from remit.jsonrpc.dispatcher import Dispatcher
from remit.mcp_server.conversation import ClientConversation
from remit.mcp_server.exchange import Outbox
from remit.tasks import Tasks

if TYPE_CHECKING:
    from remit.mcp_server.server import ToolServer

MAX_SESSIONS: Final = 10_000
"""Sessions that are open at a time; more are refused."""
MAX_PER_PRINCIPAL: Final = 1_000
"""Sessions of one principal; a new one takes the place of the oldest that is idle, so that no one locks others out."""
_NAME_BYTES: Final = 16
IDLE_S: Final = 1_800.0
"""Seconds after which a session that nothing comes from is closed; a stream that it listens to keeps it open."""


class ClientSession:
    """One client's conversation."""

    def __init__(self, face: ToolServer, principal: str | None, expire: Callable[[ClientSession], None]) -> None:
        self.id = os.urandom(_NAME_BYTES).hex()  # it must not be guessable, as one of remit.ids might be
        self.principal = principal
        self.outbox = Outbox()
        """Messages that belong to no request."""
        self.dispatcher = Dispatcher(self.outbox)
        self.ended = asyncio.Event()
        self._expire = expire
        self._busy = 0
        self._timer: asyncio.TimerHandle | None = None
        self._conversation = ClientConversation(face, self.dispatcher)
        self.dispatcher.start(self._conversation.on_request, self._conversation.on_notify)

    @contextmanager
    def used(self) -> Iterator[None]:
        """A request of it is served meanwhile."""
        self._busy += 1
        self._unwind()
        try:
            yield
        finally:
            self._busy -= 1
            if not self._busy and not self.ended.is_set():
                self._timer = asyncio.get_running_loop().call_later(IDLE_S, self._expire, self)

    @property
    def idle(self) -> bool:
        """Return whether no request of it is served."""
        return not self._busy

    def close_streams(self) -> None:
        """End the stream that the client listens to."""
        self.ended.set()
        self.outbox.wake()

    async def close(self) -> None:
        """End what is under way."""
        self._unwind()
        self.close_streams()
        await self.dispatcher.stop()
        self._conversation.close()

    def _unwind(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class ClientSessions:
    """Those that are open."""

    def __init__(self, face: ToolServer) -> None:
        self._face = face
        self._open: dict[str, ClientSession] = {}
        self._closing = Tasks()

    def begin(self, principal: str | None) -> ClientSession | None:
        """A new session; None where there are too many."""
        mine = [session for session in self._open.values() if session.principal == principal]
        if len(mine) >= MAX_PER_PRINCIPAL:
            idle = next((session for session in mine if session.idle), None)
            if idle is None:
                return None
            self._expire(idle)
        if len(self._open) >= MAX_SESSIONS:
            return None
        session = ClientSession(self._face, principal, self._expire)
        self._open[session.id] = session
        return session

    def find(self, session_id: str, principal: str | None) -> ClientSession | None:
        """The session, if there is one and it belongs to who asks."""
        session = self._open.get(session_id)
        return session if session is not None and session.principal == principal else None

    async def end(self, session: ClientSession) -> None:
        """Close a session; its name means nothing from now on."""
        self._open.pop(session.id, None)
        await session.close()

    def close_streams(self) -> None:
        """End the streams that clients listen to."""
        for session in self._open.values():
            session.close_streams()

    async def close(self) -> None:
        """Close all of them."""
        for session in list(self._open.values()):
            await self.end(session)
        await self._closing.ended()

    def _expire(self, session: ClientSession) -> None:
        self._open.pop(session.id, None)  # at once: it must not be found meanwhile
        self._closing.begin(self.end(session))
