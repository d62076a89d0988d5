"""Registers the newest records of calls over MCP with a log that others keep, checkpoint by checkpoint.

The journal is the queue: sessions of the recorder are followed one after the other, each from its beginning, and the
log takes a hash once however often it gets it. So what a crash or an absent log left out is registered later, in the
log's own time. The process whose recorder signs is the one that registers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.audit.anchoring.client import AnchorClient, Seen
from remit.audit.anchoring.heads import Heads
from remit.audit.sessions import CHECKPOINT, CLOSED, KIND, beat_of, opened_of
from remit.blocking import Threads
from remit.evidence.anchors import MOST
from remit.journal.event import Fold, HeadQuery
from remit.journal.kinds import decode
from remit.journal.owner import Owner
from remit.redact import line
from remit.tasks import uncut

if TYPE_CHECKING:
    from remit.audit.formats.keys import Signer
    from remit.journal.event import Event
    from remit.journal.journal import Journal

_log: Final = logging.getLogger("remit.audit")
_SPACING_S: Final = 1.0
"""Checkpoints are gathered for so long."""
_AGAIN_S: Final = 5.0
"""Seconds until what the log did not take is handed to it again."""
_seen: Final = msgspec.json.Decoder(Seen).decode


class Registrar:
    """Registers what the recorder of one journal signs."""

    def __init__(self, journal: Journal, client: AnchorClient, signer: Signer, tell: Callable[[str], object]) -> None:
        self._journal, self._client, self._signer, self._tell = journal, client, signer, tell
        self._owner = Owner.this()
        self._threads = Threads(1)
        self._fold = f"anchors-{client.fingerprint[:16]}"
        self._seen = Seen()
        self._number = self._kept = 0
        """The session that is followed, and the last one that is registered to its end."""
        self._heads: Heads | None = None
        """The runs of that session; None: nothing of it is taken in."""
        self._read = 0
        self._ended = False
        self._due: list[str] = []
        self._why = ""
        """Why the log took nothing last."""

    async def begin(self) -> None:
        """Find where to go on: after the last session that is registered, or with the newest. Raise JournalError."""
        if not await self._journal.folds.read(self._fold):
            newest = await self._newest()
            await self._keep(newest.session - 1 if newest is not None else 0)  # later processes go on from here, too
        (kept,) = await self._journal.folds.read(self._fold)
        self._kept, self._seen = kept.position, _seen(kept.data)
        self._number = self._kept + 1

    async def run(self) -> None:
        """Register what is signed until cancelled. Raise JournalError."""
        await self.begin()
        mark = 0
        while True:
            mark = await self._journal.changed(mark)
            is_taken = await uncut(self._look())  # or half of a checkpoint would be taken in
            await self._journal.clock.sleep(_SPACING_S if is_taken else _AGAIN_S)

    async def finish(self) -> None:
        """Register the end of this process's session once it is recorded. Raise JournalError."""
        number, mark = self._number, 0
        while self._heads is not None and self._number == number:
            mark = await self._journal.changed(mark)
            if not await self.catch_up():
                break

    async def _look(self) -> bool:
        return not await self._is_ours() or await self.catch_up()

    async def catch_up(self) -> bool:
        """Register what is signed so far; whether the log took it. Raise JournalError."""
        while True:
            for event in await self._journal.left(f"{KIND}/{self._number}", self._read):
                await self._take(event)
            if not await self._register():
                return False
            if not self._ended:
                return True
            await self._keep(self._number)
            self._number, self._heads, self._read, self._ended = self._number + 1, None, 0, False

    async def _take(self, event: Event) -> None:
        if event.seq == 1:
            self._heads = Heads(self._journal, opened_of(event), self._signer.name)
        elif self._heads is not None and event.kind == CHECKPOINT:
            self._due += await self._heads.take(await beat_of(self._journal, event))
        elif self._heads is not None and event.kind == CLOSED:
            self._ended, said = True, decode(event.kind, event.data)
            if getattr(said, "reason", "") != "lost":
                self._due += self._heads.close(event.at)
        self._read = event.seq

    async def _register(self) -> bool:
        """Hand what is due to the log; whether it took all."""
        try:
            while self._due:
                some = self._due[:MOST]
                self._seen = await self._threads.run(partial(self._client.register, some, self._signer, self._seen))
                self._due = self._due[MOST:]
                await self._keep(self._kept)
        except (OSError, ValueError) as error:
            why = f"the log of anchors takes nothing: {line(str(error) or type(error).__name__)}"
            if why != self._why:
                _log.warning("%s", why)
            self._why = why
            self._tell(why)
            return False
        self._why = ""
        self._tell("")
        return True

    async def _keep(self, number: int) -> None:
        """Keep how far the log is known, and that the sessions up to this one are in it."""
        fold = Fold(self._fold, number, msgspec.json.encode(self._seen))
        if await self._journal.folds.keep([fold], self._kept):
            self._kept = number

    async def _newest(self) -> Any:
        """Return the first event of the newest session, or None if nothing was ever signed."""
        heads = await self._journal.heads(HeadQuery(kind=KIND, limit=1))
        events = await self._journal.page(heads[0].stream, limit=1) if heads else []
        return decode(events[0].kind, events[0].data) if events else None

    async def _is_ours(self) -> bool:
        """Say whether it is this process that signs."""
        newest = await self._newest()
        owner = Owner.parse(newest.owner) if newest is not None else None
        return owner is not None and msgspec.structs.replace(owner, worker=self._owner.worker) == self._owner
