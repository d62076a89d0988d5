"""Moving a journal to another place, so that at every moment at most one of the two runs its jobs.

    1. the target is a copy under way, and runs nothing   journal_copied
    2. everything is copied and proven                    copy.py
    3. the copy is complete                               journal_copied
    4. the source is retired, unless this was a backup    journal_moved
    5. what was written to the source meanwhile is copied and proven
    6. the target is activated                            journal_activated

After a crash the same command goes on. Between 4 and 6 neither runs jobs: what each refuses says how to go on.
"""

from __future__ import annotations

import msgspec

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.copy import Copied, Progress, copy, refuse_busy
from remit.journal.journal import Journal
from remit.journal.standing import (
    COPYING,
    LIVE,
    MOVED,
    Standing,
    is_final,
    mark_copied,
    mark_live,
    mark_moved,
    refusal,
    standing_of,
)


def _no_progress(_what: str, _done: int, _all: int) -> None:
    """Show nothing."""


async def back_up(source: Journal, target: Journal, progress: Progress = _no_progress) -> Copied:
    """Make the target a copy that runs no jobs, or bring one up to date. Raises as `copy` does."""
    await refuse_busy(source)
    await mark_copied(target, source.url, complete=False)
    copied = await copy(source, target, progress)
    await mark_copied(target, source.url, complete=True)
    return copied


async def move(source: Journal, target: Journal, progress: Progress = _no_progress) -> Copied:
    """Let the work of the source go on in the target, and in it alone.

    Raises as `copy` does; JournalError (JOURNAL_MOVED, JOURNAL_BACKUP) if the source does not run jobs itself.
    """
    standing, there = await standing_of(source), await standing_of(target)
    begun = standing == Standing(MOVED, target.url) and there.state != LIVE
    if standing.state != LIVE and not begun:
        raise refusal(source.url, standing.state, standing.place)
    copied = await back_up(source, target, progress)
    if not begun:
        await mark_moved(source, target.url)
        late = await copy(source, target)
        copied = msgspec.structs.replace(late, added=copied.added + late.added)
    await mark_live(target)
    return copied


async def activate(journal: Journal, by: str, *, unfinished: bool = False) -> Standing:
    """Let a copy, or a journal that moved, run jobs; what it was before. The other one must never run again.

    Raises JournalError (JOURNAL_BACKUP) for a copy that is not complete, or a shard's that was not proven, unless
    `unfinished`; JOURNAL_MOVED for a shard that runs elsewhere.
    """
    standing = await standing_of(journal)
    if await is_final(journal):
        why = f"{journal.url}: the shard moved to {standing.place} for good, and runs there"
        remedy = f"Put the URL of {standing.place} in its place in journal.url; `remit journal move` moves it on."
        raise JournalError(why, code=Code.JOURNAL_MOVED, remedy=remedy)
    if standing == Standing(MOVED, journal.url) and not unfinished:
        why = f"{journal.url}: the shard is still moving here"
        remedy = "Run `remit journal move` again. If its old place is lost, add --unfinished."
        raise JournalError(why, code=Code.JOURNAL_BACKUP, remedy=remedy)
    if standing.state == COPYING and not unfinished:
        raise refusal(journal.url, standing.state, standing.place)
    if standing.state != LIVE:
        await mark_live(journal, by)
    return standing
