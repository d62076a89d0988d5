"""kill -9 at random moments: what was acknowledged as synced is there, whole and unchanged."""

from __future__ import annotations

import multiprocessing
import random
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from remit.clock import SystemClock
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from tests.journal.sqlite.doomed import TASKS, record_until_killed

ROUNDS = 15


def promised(witness: Connection) -> dict[int, int]:
    """Everything that the process was told before it died."""
    newest: dict[int, int] = {}
    try:
        while True:
            task, seq = witness.recv()
            newest[task] = seq
    except EOFError:
        return newest


@pytest.mark.slow
async def test_nothing_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")
    chance = random.Random(7)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.journal.sqlite.doomed"])
    acknowledged = 0
    for _ in range(ROUNDS):
        witness, end = processes.Pipe(duplex=False)
        process = processes.Process(target=record_until_killed, args=(path, end))
        process.start()
        end.close()
        witness.poll(20)
        process.join(chance.uniform(0, 0.06))
        process.kill()
        told = promised(witness)
        process.join()
        assert told
        acknowledged += len(told)
        await check(path, told)
    assert acknowledged > ROUNDS


async def check(path: str, told: dict[int, int]) -> None:
    journal = Journal(SqliteStore(path, SystemClock()))
    try:
        assert await journal.integrity() == []
        for task in range(TASKS):
            head = await journal.head(f"job/{task}/half")
            if head is None:
                assert task not in told
                continue
            assert head.seq >= told.get(task, 0), "a synced commit that was acknowledged is there"
            assert await journal.verify(f"job/{task}/half") == head.seq
            assert await journal.verify(f"job/{task}") == 2 * head.seq, "commits are there whole or not at all"
    finally:
        await journal.close()
