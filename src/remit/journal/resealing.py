"""Sealing the heads of a journal that has none, or not under the key in use."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import AppendConflictError, ChainBrokenError, StateError
from remit.journal.copy import refuse_busy
from remit.journal.event import NO_PATCH, Append, Head, HeadPatch, HeadQuery
from remit.journal.examining import examine
from remit.journal.journal import PAGE, Journal
from remit.journal.kinds import JournalVouched
from remit.journal.seals import Seals


class Resealed(msgspec.Struct, frozen=True, kw_only=True):
    """What sealing a journal came to."""

    streams: int
    sealed: int
    """Heads that were sealed now, or set back to the state that their seal says."""
    unsealed: tuple[str, ...]
    """The streams of those whose head had no seal under a key that is here."""
    problems: tuple[str, ...]
    """The problems of the streams whose heads were left as they are."""


async def vouch(journal: Journal, seals: Seals, by: str) -> None:
    """Seal under these keys what is sealed under one that is not here, and record who says that it is right."""
    former, journal.missing_key, journal.seals = journal.missing_key, b"", seals
    await journal.post("journal/seals", "seals", JournalVouched(key=seals.current.hex(), former=former.hex(), by=by))


async def seal_all(journal: Journal, *, vouched: bool = False) -> Resealed:
    """Seal every head whose stream is whole. A head that was forged stays so.

    A failed ticket that an older Remit leased, so that its head is not the one that was sealed, is failed again.

    Raises StateError without keys, JournalError (KEY_MISSING) where heads are sealed under a key that is not here, and
    JOURNAL_LOCKED while someone works on a stream. Without `vouched` for, heads of another key than the journal's stay.
    """
    journal.require_key()
    seals = journal.seals
    if seals is None:
        raise StateError("there is no key to seal with", code=Code.SETTINGS_INVALID, remedy="Set journal.key_file.")
    await refuse_busy(journal)
    streams, sealed, before = 0, 0, None
    unsealed: list[str] = []
    problems: list[str] = []
    while page := await journal.heads(HeadQuery(limit=PAGE, before=before)):
        before = page[-1].stream
        streams += len(page)
        good: list[Head] = []
        for head in page:
            doubt, former = seals.doubt(head), seals.before_lease(head)
            if doubt is None and head.seal.startswith(seals.current):
                continue
            try:
                foreign = bool(head.seal) and not seals.knows(head) and not vouched
                if doubt is not None and former is None and (doubt.code is Code.HEAD_FORGED or foreign):
                    raise doubt
                whole = replace(former or head, seal=b"")
                await examine(whole, journal.pages(head), None, journal, journal.clock.now())
            except ChainBrokenError as error:
                problems.append(f"{error.code.name}: {error.message}")
                continue
            good.append(former or head)
            unsealed += [head.stream] if doubt is not None and former is None else []
        done = await asyncio.gather(*(_seal(journal, head, seals) for head in good))
        sealed += sum(done)
    return Resealed(streams=streams, sealed=sealed, unsealed=tuple(unsealed), problems=tuple(problems))


async def _seal(journal: Journal, head: Head, seals: Seals) -> bool:
    """Return whether it is sealed: not where someone wrote to the stream at the same moment, who sealed it then."""
    seal = seals.seal(head)
    append = Append(
        stream=head.stream,
        kind=head.kind,
        expect_seq=head.seq,
        expect_hash=head.hash,
        epoch=head.epoch,
        events=(),
        at=head.updated_at,
        patch=HeadPatch(state=head.state, due_at=head.due_at, release=True) if head.state == "failed" else NO_PATCH,
        sealer=lambda _: seal,
    )
    try:
        await journal.replicate(append)
    except AppendConflictError:
        return False
    return True
