"""Several processes tell the same targets: one at a time, and what a killed one left half done is finished."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections import Counter
from pathlib import Path

import pytest

from remit import Remit
from remit.settings import load
from tests.journal.storages import PostgresStorage
from tests.parts.notify.servers import Hook
from tests.parts.notify.telling import CODE, Script, Teller, repay, telling, until_closed

pytestmark = pytest.mark.slow

QUESTIONS = 8


def opened(url: str, folder: Path, hook: str) -> Remit:
    flags = {
        "journal.url": url,
        "app.principal": "alice",
        "jobs.lease_seconds": 1,
        "notify.targets": [{"name": "oncall", "url": hook, "digest": QUESTIONS}],
    }
    return Remit(settings=load(env={}, cwd=folder, flags=flags), work=False, **CODE)


def worker(url: str, folder: str, hook: str) -> None:
    """Tell until killed; entry point of a process."""

    async def main() -> None:
        async with telling(opened(url, Path(folder), hook)):
            await asyncio.Event().wait()

    asyncio.run(main())


async def ask_all(remit: Remit) -> None:
    """Jobs that wait for answers."""
    remit.engine.start()
    for number in range(QUESTIONS):
        _ = await remit.start(repay("ada", number))


async def check_once(url: str, folder: Path, hook: Hook) -> None:
    async with telling(opened(url, folder, hook.url)) as remit, telling(opened(url, folder, hook.url)):
        await ask_all(remit)
        await until_closed(remit, QUESTIONS)
    assert Counter(posted.json["arguments"].partition(",")[2][:9] for posted in hook.posted).most_common(1)[0][1] == 1
    assert len(hook.posted) == QUESTIONS


async def test_two_workers_tell_each_question_once(tmp_path: Path, hook: Hook) -> None:
    await check_once(str(tmp_path / "journal.db"), tmp_path, hook)


async def test_the_same_on_postgresql(tmp_path: Path, storage: PostgresStorage, hook: Hook) -> None:
    await check_once(storage.url, tmp_path, hook)


async def check_killed(url: str, folder: Path, hook: Hook) -> None:
    """A process dies after its message arrived, and before that is recorded: it is sent again, under the same key."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.parts.notify.test_workers"])
    child = processes.Process(target=worker, args=(url, str(folder), hook.url))
    hook.before_answer = child.kill
    async with opened(url, folder, hook.url) as remit:
        child.start()
        try:
            remit.engine.start()
            _ = await remit.start(repay())
            await hook.until(1)
            await asyncio.to_thread(child.join)
        finally:
            child.kill()
        hook.before_answer = lambda: None
    async with telling(opened(url, folder, hook.url)) as remit:
        first, second = await hook.until(2)
        await until_closed(remit, 1)
        (row,) = await Teller(remit, Script()).rows()
        assert (await remit.service.streams.verify()).problems == ()
    assert first.body == second.body
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] == row.notification
    assert row.state == "sent"


async def test_a_message_whose_sender_was_killed_is_sent_again_with_the_same_key(tmp_path: Path, hook: Hook) -> None:
    await check_killed(str(tmp_path / "journal.db"), tmp_path, hook)


async def test_and_on_postgresql(tmp_path: Path, storage: PostgresStorage, hook: Hook) -> None:
    await check_killed(storage.url, tmp_path, hook)
