"""An agent whose process is killed at random moments ends with the same conversation; nothing is bought twice."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import Remit
from remit.clock import SystemClock
from remit.ids import new_id
from remit.journal.kinds import CommandCommitted, CommandStarted, ToolInvocationStarted, decode
from remit.models.message import Message, ToolMessage
from remit.settings import load
from remit_testing.models import ChatSpeech, ModelServer, Received, Scene, SceneCall, Streamed
from tests.journal.storages import PostgresStorage

WORKER = Path(__file__).with_name("agent_worker.py")
KILLS = int(os.environ.get("REMIT_TEST_KILLS", "4"))
TURNS = max(16, 2 * KILLS)
CALLS = 3


class Asked:
    """Three calls in every answer but the last; which one it is follows from the conversation."""

    def __init__(self) -> None:
        self.news = asyncio.Event()

    def __call__(self, request: Received) -> Streamed:
        self.news.set()
        turn = sum(message["role"] == "assistant" for message in request.body["messages"])
        if turn == TURNS:
            return Streamed(events=ChatSpeech().events(Scene(text=("All", " booked."))))
        given = [msgspec.json.encode({"turn": turn, "number": number}).decode() for number in range(CALLS)]
        calls = tuple(SceneCall("ledger__add", args, f"call_{turn}_{number}") for number, args in enumerate(given))
        return Streamed(events=ChatSpeech().events(Scene(calls=calls, stop="tools")))


async def _worked(folder: Path, url: str, model: str, job: str, killed: Callable[[], Awaitable[None]] | None) -> bool:
    """Let a process work; whether it came to the end of the job."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(WORKER), str(folder), url, model, job, env=environment
    )
    if killed is not None:
        end, kill = asyncio.create_task(process.wait()), asyncio.ensure_future(killed())
        await asyncio.wait([end, kill], return_when=asyncio.FIRST_COMPLETED)
        kill.cancel()
        if not end.done():
            process.kill()
        await end
        return process.returncode == 0
    assert await process.wait() == 0
    return True


async def _seen_through(folder: Path, url: str, model: str, killed: Callable[[], Awaitable[None]] | None) -> str:
    """A job that ended, its process killed so often on the way."""
    (folder / "ledger").mkdir(parents=True)
    job, kills = new_id("job"), 0
    while not await _worked(folder, url, model, job, killed if kills < KILLS else None):
        kills += 1
    assert kills == (KILLS if killed else 0), "it ended before it was killed so often"
    return job


async def _read(folder: Path, url: str, job: str) -> tuple[list[Message], list[Any]]:
    """The conversation, and all events of the job; a replay, which has no model, agrees."""
    flags = {"journal.url": url}
    async with Remit(settings=load(cwd=folder, file=None, env={}, flags=flags), work=False) as remit:
        assert (await remit.service.jobs.replay(job)).verdict == "same"
        events = await remit.runtime.journal.read(f"job/{job}")
        return await remit.service.conversations.messages(job), [decode(event.kind, event.data) for event in events]


@pytest.mark.slow
async def test_an_agent_that_is_killed_again_and_again_ends_with_the_same_conversation(tmp_path: Path) -> None:
    await _ends_the_same(tmp_path, str(tmp_path / "journal.db"))


@pytest.mark.slow
async def test_the_same_on_postgresql(tmp_path: Path, storage: PostgresStorage) -> None:
    await _ends_the_same(tmp_path, storage.url)


async def _ends_the_same(tmp_path: Path, url: str) -> None:
    asked, chance = Asked(), random.Random(7)

    async def soon_after_a_question() -> None:
        asked.news.clear()
        await asked.news.wait()
        await SystemClock().sleep(chance.uniform(0, 0.03))

    async with ModelServer(asked).listening() as server:
        model = f"openai-compatible:{server.url}#m"
        calm = await _seen_through(tmp_path / "calm", url, model, None)
        killed = await _seen_through(tmp_path / "killed", url, model, soon_after_a_question)
    expected, _ = await _read(tmp_path / "calm", url, calm)
    found, events = await _read(tmp_path / "killed", url, killed)
    assert found == expected
    assert found[-1].text == "All booked."
    results = [block for message in found for block in message.blocks if isinstance(block, ToolMessage)]
    assert len(results) == TURNS * CALLS

    booked = Counter(path.name.rpartition("-")[0] for path in (tmp_path / "killed" / "ledger").iterdir())
    assert booked == {f"{turn}-{number}": 1 for turn in range(TURNS) for number in range(CALLS)}

    bought: set[str] = set()
    for event in events:
        if isinstance(event, CommandStarted):
            assert event.step not in bought, "an answer was asked for again that was recorded"
        elif isinstance(event, CommandCommitted) and event.error is None:
            bought.add(event.step)
    assert len(bought) == TURNS + 1
    tools = Counter(event.step for event in events if isinstance(event, ToolInvocationStarted))
    assert len(tools) == TURNS * CALLS
