"""Turns of an agent whose model answers at once: what recording and governing costs, beside other frameworks."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import apsw
import msgspec

from bench.lab import LANGGRAPH_AGENT, PYDANTIC_AI, PYDANTIC_AI_DBOS, Lab
from bench.measure import Mark, Peer, Reading, Result, Watch, against
from bench.subject import remit_in
from remit import Remit
from remit.jobs.answers import AgentAnswer
from remit.jobs.bound import RecipeCall
from remit.parts.agents.recipes import agent

TURNS: Final = 100
"""As the peers' programs do (bench/peers/program.py)."""
AGENTS, EACH = 64, 10
MANY: Final = 1_000
_QUESTION: Final = "What changed in the notes since yesterday, and who changed it? " * 4
_ANSWER: Final = "Three notes changed; the newest one is about the plan for the week. " * 12


async def turns_three_calls(lab: Lab) -> list[Result]:
    """Turns with three calls of tools each, one after the other."""
    return await _turns(lab, 3)


async def turns_one_call(lab: Lab) -> list[Result]:
    """Turns with one call each: what they take less is the price of two calls."""
    return await _turns(lab, 1)


async def agents_at_once(lab: Lab) -> list[Result]:
    """64 agents at once, of ten turns with three calls each."""

    async def sample() -> Reading:
        async with scripted(lab.folder, EACH, 3) as remit:
            watch = Watch()
            jobs = await asyncio.gather(*(remit.start(scripted_agent(EACH)) for _ in range(AGENTS)))
            await asyncio.gather(*(job.result() for job in jobs))
            return watch.rate(AGENTS * EACH)

    return await against("64 agents, turns with 3 tool calls", "per second", sample, None, "", rounds=3)


async def journal_of_turns(lab: Lab) -> list[Result]:
    """Bytes of events for each turn of a long conversation, beside a short one."""

    async def of(turns: int) -> Reading:
        with tempfile.TemporaryDirectory(dir=lab.folder) as own:
            path = Path(own) / "kept.db"
            async with scripted(lab.folder, turns, 3, {"journal.url": str(path)}) as remit:
                await remit.run(scripted_agent(turns))
            return Reading(_kept(path) / turns)

    name, note = "journal, agent turn of 1,000", "floor: a turn of 100"
    mark = Mark(1.1, "floor")
    return await against(name, "bytes", lambda: of(MANY), lambda: of(TURNS), note, mark=mark, rounds=1)


async def journal_of_chats(lab: Lab) -> list[Result]:
    """Bytes of a turn of `remit chat`, each in a job of its own, in a long conversation beside a short one."""

    async def of(turns: int) -> Reading:
        with tempfile.TemporaryDirectory(dir=lab.folder) as own:
            path, script = Path(own) / "kept.db", Path(own) / "script.json"
            script.write_bytes(msgspec.json.encode([{"say": _ANSWER} for _ in range(turns)]))
            flags = {"models.default": f"scripted:{script}", "journal.url": str(path)}
            async with remit_in(lab.folder, flags=flags) as remit:
                job = (await remit.start(agent(task=_QUESTION))).id
                await remit.job(job).result()
                for _ in range(turns - 1):
                    job = await remit.service.conversations.say(job, _QUESTION)
                    await remit.job(job).result()
            return Reading(_kept(path) / turns)

    name, note = "journal, chat turn of 1,000", "floor: a turn of 100"
    mark = Mark(1.1, "floor")
    return await against(name, "bytes", lambda: of(MANY), lambda: of(TURNS), note, mark=mark, rounds=1)


_TABLES: Final = ("events", "blobs")


def _kept(path: Path) -> int:
    """Bytes of all events, and of the values beside them."""
    db = apsw.Connection(str(path))
    count = db.execute(
        "SELECT (SELECT sum(length(data)) FROM events) + (SELECT coalesce(sum(length(data)), 0) FROM blobs)"
    ).get
    db.close()
    return int(count)


async def _turns(lab: Lab, calls: int) -> list[Result]:
    async def sample() -> Reading:
        async with scripted(lab.folder, TURNS, calls) as remit:
            await remit.run(scripted_agent(TURNS))
            watch = Watch()
            await remit.run(scripted_agent(TURNS))
            return watch.rate(TURNS)

    name = f"agent turn with {calls} tool call{'s' if calls > 1 else ''}"
    return await against(name, "per second", sample, None, "", peers=_rivals(lab, f"agent-{calls}"), rounds=3)


def _rivals(lab: Lab, workload: str) -> list[Peer]:
    durable = Mark(3, "peer")
    marks = {PYDANTIC_AI: None, PYDANTIC_AI_DBOS: durable, LANGGRAPH_AGENT: durable}
    return [peer for name, mark in marks.items() for peer in lab.rival(name, workload, mark)]


def scripted_agent(turns: int) -> RecipeCall[AgentAnswer]:
    """An agent that takes so many turns."""
    return agent(task="Read.", tools=["bench.read"], turns=turns + 1)


def scripted(
    folder: Path, turns: int, calls: int, flags: dict[str, str] | None = None
) -> AbstractAsyncContextManager[Remit]:
    """A Remit whose model makes so many calls in each of so many answers, and then ends."""
    script = folder / f"script-{turns}-{calls}.json"
    steps = [
        {"call": [{"tool": "bench.read", "args": {"number": turn * calls + number}} for number in range(calls)]}
        for turn in range(turns)
    ]
    script.write_bytes(msgspec.json.encode([*steps, {"say": "Done."}]))
    return remit_in(folder, flags={"models.default": f"scripted:{script}", **(flags or {})})
