"""One client's session: the stream its calls are recorded in, and the questions they wait for."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.canonical import digest
from remit.errors import NotCanonicalError
from remit.http.access import Access
from remit.ids import new_id
from remit.journal.event import HeadPatch
from remit.journal.kinds import SessionOpened

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter

MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""The largest request that is taken."""
KIND: Final = "session"
"""The kind of their streams."""
_MAX_ASKED: Final = 1_000
_MAX_ALIKE: Final = 100


class Caller(NamedTuple):
    """Who made a request over HTTP."""

    access: Access
    """What its token allows."""
    session: str | None
    """The session it names (before 2026-07-28)."""


class Asked(NamedTuple):
    """A call that waits for a person."""

    step: str
    confirmation: str | None
    """None: nobody was asked yet."""


class Client:
    """Who calls."""

    def __init__(self, journal: Journal, *, principal: str, name: str, version: str, transport: str) -> None:
        """Nothing is recorded before the first call; `name` and `version` are what the program says of itself."""
        self.principal = principal
        self._journal = journal
        self._opened = SessionOpened(
            session=new_id("ses"), face="mcp", principal=principal, client=name, client_version=version, via=transport
        )
        self._writer: StreamWriter | None = None
        self._opening = asyncio.Lock()
        self._asked: OrderedDict[str, list[Asked]] = OrderedDict()

    @property
    def session(self) -> str:
        """The session's identifier; its stream is `session/<identifier>`."""
        return self._opened.session

    async def writer(self) -> StreamWriter:
        """The writer of the session's stream, which begins with who calls."""
        writer = self._writer
        if writer is None or writer.failure is not None:
            async with self._opening:
                writer = await self._open()
        return writer

    async def _open(self) -> StreamWriter:
        """Begin the stream, or go on with it where the storage failed: questions belong to their stream."""
        before, stream = self._writer, f"{KIND}/{self.session}"
        if before is not None and before.failure is None:
            return before  # another call was faster
        head = None if before is None else await self._journal.head(stream)
        writer = self._writer = self._journal.writer(stream, KIND, head)
        if head is None:
            opened = self._opened
            title = f"{opened.client or 'an MCP client'} as {opened.principal}"
            patch = HeadPatch(state="open", title=title, labels={"face": "mcp", "principal": opened.principal})
            await self._journal.append(writer, opened, synced=False, patch=patch)
        return writer

    # --- calls that come again

    def asked(self, tool: str, args: dict[str, Any]) -> tuple[Asked, ...]:
        """The questions about this very call, the oldest first: one each time it was made without an answer."""
        return tuple(self._asked.get(_key(tool, args), ()))

    def take(self, tool: str, args: dict[str, Any], asked: Asked) -> bool:
        """Whether the question is now this call's to go on with, and no other's."""
        key = _key(tool, args)
        waiting = self._asked.get(key, [])
        if asked not in waiting:
            return False
        waiting.remove(asked)
        if not waiting:
            del self._asked[key]
        return True

    def remember(self, tool: str, args: dict[str, Any], asked: Asked) -> None:
        """Keep the question for when the call comes again."""
        key = _key(tool, args)
        waiting = self._asked.setdefault(key, [])
        waiting.append(asked)
        del waiting[:-_MAX_ALIKE]
        self._asked.move_to_end(key)
        if len(self._asked) > _MAX_ASKED:
            self._asked.popitem(last=False)


def _key(tool: str, args: dict[str, Any]) -> str:
    try:
        return f"{tool} {digest(args)}"
    except NotCanonicalError:
        return ""  # such a call is refused before anybody is asked
