"""Signs what the journal says, while it is said: a checkpoint over every stream that grew, every N events or H seconds.

    1. look     how far each stream reached since the last checkpoint, whichever process wrote it (Store.ends)
    2. record   leaves, root and signature, synced; with it everything that the leaves stand for is on the disk
    3. keep     the position reached, as a fold: after a crash before this, leaves stand in the log twice
    4. publish  to the witness and to the second place (publishing.py)

So nothing is published that a loss of power could take back. One process signs at a time. There is no lease: the next
one ends the session of a process that died, or that has signed nothing for three times H, by an event in its stream.
A process that was only slow finds its stream changed then, and signs nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.canonical import sha256 as digest_of
from remit.clock import DAY, SECOND
from remit.errors import AppendConflictError
from remit.evidence.merkle import Tree
from remit.evidence.note import Checkpoint, Note, encoded
from remit.journal.blobs import pack
from remit.journal.event import Blob, HeadPatch, JournalFold, StreamEnd
from remit.journal.leases import Owner
from remit.journal.retirement import STREAM
from remit.parts.recorder.keys import RecordSigner
from remit.parts.recorder.kinds import RecorderCheckpoint, RecorderClosed, RecorderOpened
from remit.parts.recorder.log import KIND, ORIGIN, LogSession, encode_leaves, grown, handover, hashed, newest, stream_of
from remit.parts.recorder.publisher import PublishedState
from remit.version import __version__

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter
    from remit.parts.recorder.publisher import Publisher

_STRETCH: Final = 20_000
"""Positions that one checkpoint covers at most; what is beyond comes with the next one."""
_LAST: Final = 10
"""Checkpoints at the end of a session at most, where other processes write all the time."""
MISSED: Final = 3
"""So many times H without a checkpoint, and another process takes over."""


class RecorderTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a recorder signs, and how often."""

    origin: str
    every_events: int
    every_seconds: int
    session_seconds: int = DAY // SECOND
    settings: bytes
    """The settings without secrets, as JSON."""


class LogRecorder:
    """Records one log; another process may take its turn."""

    def __init__(
        self, journal: Journal, terms: RecorderTerms, signers: Sequence[RecordSigner], publisher: Publisher
    ) -> None:
        self._journal = journal
        self._terms = terms
        self._signers = signers
        self._publisher = publisher
        self._owner = Owner.this()
        self._fold = f"recorder-{sha256(terms.origin.encode()).hexdigest()[:16]}"
        self._writer: StreamWriter | None = None
        """Of the session; None: another process signs, or none does."""
        self._tree = Tree()
        self._position = self._saved = 0
        self._began = self._signed_at = self._checkpoints = self._stamped = 0

    @property
    def records(self) -> bool:
        """Return whether this process is the one that signs."""
        return self._writer is not None

    async def look(self, *, at_once: bool = False) -> bool:
        """Sign a checkpoint if one is due, or something was recorded and is to be covered `at_once`; whether more is.

        Raises JournalError, or ChainBrokenError if the log is not what was signed.
        """
        try:
            writer = self._writer or await self._begin()
            if writer is None:
                return False
            now = self._journal.clock.now()
            is_over = now - self._began >= self._terms.session_seconds * SECOND
            reached = await self._journal.ends(self._position, _STRETCH)
            due = now - self._signed_at >= self._terms.every_seconds * SECOND or now < self._signed_at
            ends = [end for end in reached.ends if end.stream != STREAM]  # each copy of a journal has its own
            new = (at_once or is_over) and any(end.stream != writer.stream for end in ends)
            if ends and (new or due or reached.position - self._position >= self._terms.every_events):
                await self._sign(writer, ends, reached.position)
                if reached.more or not is_over:
                    return reached.more
            if is_over:  # and what it saw is covered
                await self._end("day")
                return True
        except BaseException as error:  # what this process knows of the log may not be what is recorded now
            self._writer = None
            if not isinstance(error, AppendConflictError):  # another process ended the session, or was faster
                raise
        return False

    async def cover(self) -> None:
        """Sign what is recorded. Raises as `look` does."""
        for _ in range(_LAST):
            if self._writer is None or not await self.look(at_once=True):
                break

    async def end(self) -> None:
        """End the session. Raises JournalError."""
        await self._end("stopped")

    # --- sessions

    async def _begin(self) -> StreamWriter | None:
        """Begin a session, unless another process is in one: None."""
        last = await newest(self._journal)
        if last is not None and last.is_open:
            if not self._is_over(last):
                return None
            writer = self._journal.writer(last.head.stream, KIND, last.head)
            tree = await self._tree_of(last.opened.origin)
            closed = self._closed("lost", len(last.checkpoints), tree, PublishedState())
            await self._journal.append(writer, closed, synced=True, patch=HeadPatch(state="closed", closed=True))
        log = await grown(self._journal, self._terms.origin)
        folds = await self._journal.folds.read(self._fold)
        self._tree, self._saved = (log.tree if log else Tree()), (folds[0].position if folds else 0)
        self._position = self._saved if log else 0
        opened = self._opened(last.opened.session + 1 if last else 1, log.session.opened if log else None)
        blob = Blob(opened.settings_hash, self._terms.settings)
        writer = self._journal.writer(stream_of(opened.session), KIND)
        patch = HeadPatch(state="open", title=opened.origin, labels={ORIGIN: opened.origin})
        began = await self._journal.append(writer, opened, synced=True, patch=patch, blobs=(blob,))
        self._writer, self._began, self._signed_at, self._checkpoints = writer, began, 0, 0
        return writer

    def _is_over(self, session: LogSession) -> bool:
        owner = Owner.parse(session.opened.owner)
        silent = self._journal.clock.now() - session.last_at
        ours = session.opened.owner == str(self._owner)  # left behind by a failure of the journal
        return ours or (owner is not None and owner.dead()) or silent > MISSED * session.opened.every_seconds * SECOND

    async def _tree_of(self, origin: str) -> Tree:
        log = await grown(self._journal, origin)
        return log.tree if log else Tree()

    def _opened(self, session: int, before: RecorderOpened | None) -> RecorderOpened:
        key, terms, signature = self._signers[0].key, self._terms, ""
        if before is not None and before.key != str(key):
            text = handover(terms.origin, before.key, key, self._tree)
            signature = next((signer.sign(text) for signer in self._signers if str(signer.key) == before.key), "")
        return RecorderOpened(
            session=session,
            origin=terms.origin,
            deployment=before.deployment if before else self._owner.worker.partition("_")[2],
            release=__version__,
            owner=str(self._owner),
            settings_hash=digest_of(terms.settings),
            key=str(key),
            previous_key=before.key if before else "",
            handover=signature,
            size=self._tree.size,
            peaks=tuple(encoded(peak) for peak in self._tree.peaks),
            every_events=terms.every_events,
            every_seconds=terms.every_seconds,
        )

    async def _end(self, reason: Literal["stopped", "day"]) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            published = self._seen()
            closed, patch = (
                self._closed(reason, self._checkpoints, self._tree, published),
                HeadPatch(state="closed", closed=True),
            )
            await self._journal.append(writer, closed, synced=True, patch=patch, blobs=published.stamp.blobs)
            self._stamped = max(self._stamped, published.stamped)

    def _seen(self) -> PublishedState:
        """Return what others said of the log, without a stamp that is recorded."""
        published = self._publisher.published
        if published.stamped > self._stamped:
            return published
        return PublishedState(published.cosigned, published.cosignatures)

    @staticmethod
    def _closed(
        reason: Literal["stopped", "day", "lost"], checkpoints: int, tree: Tree, published: PublishedState
    ) -> RecorderClosed:
        return RecorderClosed(
            reason=reason,
            checkpoints=checkpoints,
            size=tree.size,
            root=encoded(tree.root),
            cosigned=published.cosigned,
            cosignatures=published.cosignatures,
            stamped=published.stamped,
            stamp=published.stamp.inline,
            stamp_blob=published.stamp.ref,
        )

    # --- checkpoints

    async def _sign(self, writer: StreamWriter, ends: Sequence[StreamEnd], position: int) -> None:
        signer = self._signers[0]

        def made() -> tuple[list[bytes], Tree, Checkpoint, str, bytes]:
            hashes = hashed(ends)
            tree = self._tree.grown(hashes)
            checkpoint = Checkpoint(self._terms.origin, tree.size, tree.root)
            return hashes, tree, checkpoint, signer.line(checkpoint), encode_leaves(ends)

        # In a thread: of many streams it would hold the event loop up.
        hashes, tree, checkpoint, line, leaves = await asyncio.to_thread(made)
        packed, published = pack(leaves), self._seen()
        recorded = RecorderCheckpoint(
            size=tree.size,
            root=encoded(tree.root),
            heads=len(ends),
            signature=line,
            leaves=packed.inline,
            leaves_blob=packed.ref,
            cosigned=published.cosigned,
            cosignatures=published.cosignatures,
            stamped=published.stamped,
            stamp=published.stamp.inline,
            stamp_blob=published.stamp.ref,
        )
        at = await self._journal.append(writer, recorded, synced=True, blobs=packed.blobs + published.stamp.blobs)
        self._stamped = max(self._stamped, published.stamped)
        self._publisher.offer(Note(checkpoint, (line,)), tree, hashes)
        self._tree, self._signed_at = tree, at
        self._position, self._checkpoints = position, self._checkpoints + 1
        if await self._journal.folds.keep([JournalFold(self._fold, position, b"")], self._saved):
            self._saved = position
        else:  # of the process that signed before, at the same moment
            folds = await self._journal.folds.read(self._fold)
            self._saved = folds[0].position if folds else 0
