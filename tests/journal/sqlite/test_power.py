"""Loss of power at any moment: what was acknowledged as synced is there, and nothing is torn."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit.testing.clock import ManualClock
from remit.testing.journal.storage import head_of, job, note
from tests.journal.sqlite.disk import inserted


@pytest.mark.parametrize("seed", range(4))
async def test_what_was_synced_outlives_a_loss_of_power(seed: int, tmp_path: Path) -> None:
    chance, clock = random.Random(seed), ManualClock()
    with inserted() as disk:
        store = SqliteStore(str(tmp_path / "journal.db"), clock, vfs=disk.name)
        journal = Journal(store, clock)
        # So often that much of it happens in between.
        await store._writer.run(lambda: store._db.execute("PRAGMA wal_autocheckpoint = 12"))
        writers = [await job(journal, f"job/{name}") for name in "ab"]
        promised = [1, 1]
        for number in range(2, 60):
            writer = chance.choice(writers)
            synced = chance.random() < 0.3
            await journal.append(writer, *[note(number)] * chance.randint(1, 20), synced=synced)
            if synced:
                promised = [writer.seq for writer in writers]
            if chance.random() < 0.3:
                await journal.drained()
                (left := tmp_path / str(number)).mkdir()
                disk.lose_power(left, chance)
                await check(left / "journal.db", promised)
        await journal.close()


async def check(path: Path, promised: list[int]) -> None:
    journal = Journal(SqliteStore(str(path), ManualClock()))
    try:
        assert await journal.integrity() == []
        for name, seq in zip("ab", promised, strict=True):
            assert (await head_of(journal, f"job/{name}")).seq >= seq
            assert await journal.verify(f"job/{name}") >= seq
    finally:
        await journal.close()
