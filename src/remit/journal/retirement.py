"""Which of several journals with the same jobs runs them: one, and the others refuse every write.

The stream `journal` says so, and its head is looked at in the transaction of every write and every lease:

    live     runs jobs; so does a journal without that stream
    copying  a copy that is not complete (JOURNAL_BACKUP)
    backup   a copy (JOURNAL_BACKUP), until someone activates it
    moved    goes on in another journal (JOURNAL_MOVED)

A copy writes *aside*: its commits do not ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.event import HeadPatch
from remit.journal.kinds import JournalActivated, JournalCopied, JournalMoved, decode

if TYPE_CHECKING:
    from remit.journal.journal import Journal

STREAM: Final = "journal"
KIND: Final = "journal"
LIVE: Final = "live"
COPYING: Final = "copying"
BACKUP: Final = "backup"
MOVED: Final = "moved"
STOP: Final = "Stop the workers. Streams of a killed worker are free once its lease expires."
RETIRED: Final = (COPYING, BACKUP, MOVED)
"""States of a journal in which only a copy is written."""


class CopyState(msgspec.Struct, frozen=True):
    """What a journal is among its copies."""

    state: str
    place: str = ""
    """The journal it moved to, or is a copy of."""


def refusal(url: str, state: str, place: str) -> JournalError:
    """Return what a write to a journal that runs no jobs is refused with."""
    login = " Add user and password to a server's URL: they are not recorded." if "://" in url + place else ""
    if state == MOVED:
        remedy = (
            f"Use --journal {place}. To use this journal again instead, run `remit --journal {url} journal activate`."
            f"{login}"
        )
        return JournalError(f"{url}: the journal moved to {place}", code=Code.JOURNAL_MOVED, remedy=remedy)
    if state == COPYING:
        reason = f"{url}: the copy of {place} is not complete"
        return JournalError(
            reason, code=Code.JOURNAL_BACKUP, remedy=f"Run `remit journal copy {place} {url}` again.{login}"
        )
    if place == url:
        reason = f"{url}: the journal is a backup that was put in its place, and runs no jobs"
        remedy = "If the journal that stood there will not run again, run `remit journal activate`."
        return JournalError(reason, code=Code.JOURNAL_BACKUP, remedy=remedy)
    remedy = f"If {place} is gone and will not run again, run `remit --journal {url} journal activate`.{login}"
    reason = f"{url}: the journal is a copy of {place}, and runs no jobs"
    return JournalError(reason, code=Code.JOURNAL_BACKUP, remedy=remedy)


def busy(number: int, stream: str) -> JournalError:
    """Return what ends a journal is refused with while workers hold streams of it."""
    reason = f"workers hold {number} stream{'s' * (number != 1)}, such as {stream}"
    return JournalError(reason, code=Code.JOURNAL_LOCKED, remedy=STOP)


async def standing_of(journal: Journal) -> CopyState:
    """Return what a journal is."""
    head = await journal.head(STREAM)
    return CopyState(LIVE) if head is None else CopyState(head.state, head.title)


async def mark_copied(journal: Journal, source: str, *, complete: bool) -> None:
    """Make it a copy that runs no jobs, complete or under way.

    Raises JournalError (JOURNAL_LOCKED) while someone holds a lease in it.
    """
    await _mark(journal, JournalCopied(source=source, complete=complete), BACKUP if complete else COPYING, source)


async def mark_moved(journal: Journal, target: str) -> None:
    """End the work in it for good. Raises JournalError (JOURNAL_LOCKED) while someone holds a lease in it."""
    await _mark(journal, JournalMoved(target=target), MOVED, target)


async def mark_final(journal: Journal, target: str) -> None:
    """Let no one take a move to `target` back any more; the caller has found it under way.

    Raises AppendConflictError if someone took it back at this moment.
    """
    head = await journal.head(STREAM)
    if head is not None and (head.state, head.title) == (MOVED, target):
        append = journal.writer(STREAM, KIND, head).stage(JournalMoved(target=target, final=True))
        await journal.replicate(append)
    else:
        raise AppendConflictError(f"{journal.url}: the move to {target} was taken back")


async def is_final(journal: Journal) -> bool:
    """Return whether it moved, and is never taken back."""
    head = await journal.head(STREAM)
    events = await journal.read(STREAM, head.seq - 1) if head is not None else []
    newest = decode(events[-1].kind, events[-1].data) if events else None
    return isinstance(newest, JournalMoved) and newest.final


async def mark_live(journal: Journal, by: str = "") -> None:
    """Let it run jobs."""
    await _mark(journal, JournalActivated(by=by), LIVE, "")


async def _mark(
    journal: Journal, payload: JournalCopied | JournalMoved | JournalActivated, state: str, place: str
) -> None:
    writer = journal.writer(STREAM, KIND, await journal.head(STREAM))
    append = writer.stage(payload, patch=HeadPatch(state=state, title=place))
    await journal.replicate(append, unleased=state != LIVE)
