"""Loss of power at any moment: what was acknowledged as synced is there, and what is there is a beginning of it all.

What was written since the last flush of its file is kept, dropped or torn, sector by sector: of the log as well as of
the database, while it is written to and while a checkpoint moves the one into the other.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import head_of, job, note
from tests.journal.sqlite.disk import inserted

NAMES = ("job/a", "job/b")
State = tuple[tuple[int, bytes], ...]
"""Seq and chain value of each stream."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_what_was_synced_outlives_a_loss_of_power(seed: int, tmp_path: Path) -> None:
    chance, clock = random.Random(seed), ManualClock()
    with inserted() as disk:
        store = SqliteStore(str(tmp_path / "journal.db"), clock, vfs=disk.name)
        journal = Journal(store, clock)
        # So often that much of it happens in between.
        await store._writer.run(lambda: store._db.execute("PRAGMA wal_autocheckpoint = 12"))
        writers = [await job(journal, name) for name in NAMES]
        states, promised = [await state(journal)], 0
        for number in range(2, 60):
            writer = chance.choice(writers)
            synced = chance.random() < 0.3
            await journal.append(writer, *[note(number)] * chance.randint(1, 20), synced=synced)
            states.append(await state(journal))
            if synced:
                promised = len(states) - 1
            if chance.random() < 0.3:
                (left := tmp_path / str(number)).mkdir()
                disk.lose_power(left, chance)
                await check(left / "journal.db", states, promised)
        await journal.close()
        assert disk.syncs[""] > 0, "there were checkpoints"


async def state(journal: Journal) -> State:
    """Where every stream stands."""
    heads = [await head_of(journal, name) for name in NAMES]
    return tuple((head.seq, head.hash) for head in heads)


async def check(path: Path, states: list[State], promised: int) -> None:
    """What is left is what was there after some append, and not before the newest that was promised."""
    journal = Journal(SqliteStore(str(path), ManualClock()), ManualClock())
    try:
        assert await journal.integrity() == []
        left = await state(journal)
        assert left in states
        assert states.index(left) >= promised
        for name in NAMES:
            await journal.verify(name)
            writer = journal.writer(name, "job", await head_of(journal, name))
            await journal.append(writer, note(0), synced=True)
    finally:
        await journal.close()
