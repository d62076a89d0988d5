"""remit journal backup: the journal as of one moment, while others write and die; restored, it verifies and goes on."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import StateError
from remit.journal.event import HeadQuery
from remit.journal.journal import Journal
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit.parts.retention.backup import back_up
from remit_testing.journal.storage import due, job, note
from tests.cli.conftest import Project, lines_until, project
from tests.patience import PATIENCE_S

__all__ = ["project"]

_JOBS = 200
"""Jobs that are written at most: to verify a backup takes the longer, the more came before it."""


@pytest.mark.slow
async def test_backups_that_are_made_while_others_write_are_whole(tmp_path: Path) -> None:
    source = Journal(SqliteStore(str(tmp_path / "journal.db"), SystemClock()), SystemClock())
    done = asyncio.Event()

    async def write() -> None:
        for number in range(_JOBS):
            writer = await job(source, f"job/{number}", due())
            for step in range(2, 12):
                await source.append(writer, note(step), synced=step % 3 == 0)
            if done.is_set():
                return

    writing = asyncio.create_task(write())
    while len(await source.heads(HeadQuery())) < 5:
        await source.changed(0)
    for name in ("a.db", "b.db"):
        made = await back_up(source, tmp_path / name, verify=True)
        assert (made.problems, made.streams > 5) == ((), True)
    done.set()
    await writing
    await source.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "b.db", "journal.db"]


async def test_a_journal_that_is_no_file_is_backed_up_elsewhere(tmp_path: Path) -> None:
    source = Journal(SqliteStore(MEMORY, SystemClock()), SystemClock())
    with pytest.raises(StateError) as refused:
        await back_up(source, tmp_path / "a.db", verify=False)
    assert refused.value.code is Code.BACKUP_ELSEWHERE
    await source.close()


@pytest.mark.slow
def test_a_backup_of_a_killed_workers_journal_is_restored_and_its_job_goes_on(project: Project) -> None:
    os.mkfifo(project.folder / "never")
    here, saved = project.folder / ".remit/journal.db", project.folder / "saved.db"
    ended = project.job("report")
    with project.start("run", "risky", "--done", "never") as worker:
        lines_until(worker, lambda line: "a write is under way" in line)
        made = project.here("journal", "backup", str(saved), "--verify", "--json")
        assert (made.status, made.json["ok"], made.json["verified"]) == (0, True, True)
        assert project.here("journal", "backup", str(saved)).status == 2, "it is there"
        worker.kill()
        worker.wait(PATIENCE_S)
        for pipe in (worker.stdout, worker.stderr):
            if pipe is not None:
                pipe.close()
    for ending in ("", "-wal", "-shm"):
        here.with_name(here.name + ending).unlink(missing_ok=True)
    shutil.copy(saved, here)
    refused = project.here("resume", "last").err
    assert ("JOURNAL_BACKUP" in refused, "a backup that was put in its place" in refused) == (True, True)
    done = project.here("journal", "activate")
    assert (done.status, str(here) in done.err, "that stood in its place" in done.err) == (0, False, True)
    assert project.here("verify").status == 0
    assert project.here("show", ended).status == 0
    done = project.here("resume", "last", "--json")
    assert done.status == 4, "nobody knows whether the call happened: a person has to say"
    assert project.here("decide", "last", "1", "--done", '"written"').status == 0
    assert project.here("resume", "last", "--json").json["state"] == "completed"
    assert project.here("verify").status == 0
