"""Claude Code and Codex behind `remit mcp wrap`: a read runs; a write is asked about, approved, and runs once.

They are large, so they are installed and run only if that is asked for: `make agents`, REMIT_TEST_AGENTS=1. A person
at their terminals takes `REMIT_TEST_PERSON_S` seconds to answer where that is what is tested.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from remit.process.family import ProcessFamily
from remit_testing.models import ModelServer
from tests.cli.terminal import Terminal
from tests.mcp_server.agents import PROMPT, READ, WRITE, Agent, ClaudeCode, Codex, Place, run
from tests.parts.work.executors.agents import real
from tests.parts.work.executors.wires import Script

STARTS: Final = 10
PERSON_S: Final = float(os.environ.get("REMIT_TEST_PERSON_S", "6"))
AGENTS: Final = pytest.mark.parametrize("agent", [ClaudeCode(), Codex()], ids=lambda agent: type(agent).__name__)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), real]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "notes.json").write_text('{"tea": "black"}')
    return Place(tmp_path)


class Desk(NamedTuple):
    """A person at the terminal of an agent with a scripted model."""

    agent: Agent
    screen: Terminal
    script: Script
    server: ModelServer

    async def say(self, *calls: tuple[str, dict[str, Any]]) -> None:
        """Have the model make some calls more."""
        self.script.calls += calls
        self.script.closing = ("That was ", f"call{len(self.script.calls)}.")
        await asyncio.to_thread(self.screen.enter, PROMPT)

    async def asked(self) -> None:
        await self.sees(self.agent.dialog)

    async def approve(self) -> None:
        await asyncio.to_thread(self.agent.approve, self.screen)

    async def told(self) -> str:
        """Return what the model has been told of its calls, once the turn is over.

        Codex also asks for a title of the task, at its own time.
        """
        await self.sees(rf"call{len(self.script.calls)}\.[\s\S]*?{self.agent.idle}")
        told = (json.dumps(each.body) for each in reversed(self.server.received))
        return next(text for text in told if "function_call_output" in text or "tool_result" in text)

    async def sees(self, pattern: str) -> None:
        await asyncio.to_thread(self.screen.expect, pattern)


@asynccontextmanager
async def desk(agent: Agent, place: Place, *, tool_s: int = 0) -> AsyncIterator[Desk]:
    """An agent that has the tools, and ends with the block."""
    script = Script("ok", [])
    async with ModelServer(script).listening() as server:
        start, family = agent.interactive(place, server.url, tool_s=tool_s), ProcessFamily()
        try:
            with Terminal(start.words, cwd=place.folder, env={**place.env, **start.env, **family.env}) as screen:
                await asyncio.to_thread(agent.ready, screen)
                yield Desk(agent, screen, script, server)
        finally:
            await asyncio.to_thread(family.end)  # Codex leaves a daemon of its own session behind


def runs(steps: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the tool and the state of each call of a session."""
    return [(step["name"].rpartition(".")[2], step["state"]) for step in steps]


async def headless(agent: Agent, place: Place, calls: list[tuple[str, dict[str, Any]]]) -> tuple[Script, str]:
    """Run an agent with nobody there; the script of its model, and what that was told in the end."""
    script = Script("ok", calls)
    async with ModelServer(script).listening() as server:
        start = agent.headless(place, server.url)
        said = await run(start.words, {**place.env, **start.env}, place.folder)
        assert script.offered, said
        return script, json.dumps(server.received[-1].body)


@AGENTS
async def test_headless_a_write_is_approved_elsewhere_and_runs_exactly_once(agent: Agent, place: Place) -> None:
    _, told = await headless(agent, place, [READ, WRITE])
    assert "black" in told
    assert "CONFIRMATION_REQUIRED" in told
    assert "milk" not in place.notes
    await place.approve()
    _, told = await headless(agent, place, [WRITE, WRITE])
    assert "noted milk" in told
    assert "CONFIRMATION_REQUIRED" in told, "the second write asks anew"
    assert place.notes["milk"] == "buy"
    assert len(await place.open_questions()) == 1


@AGENTS
async def test_headless_the_tools_are_there_in_the_first_turn(agent: Agent, place: Place) -> None:
    first_turns = [(await headless(agent, place, [READ]))[0].offered[0] for _ in range(STARTS)]
    assert [any("read_note" in name for name in names) for names in first_turns] == [True] * STARTS


@AGENTS
async def test_a_person_approves_a_write_in_the_dialog(agent: Agent, place: Place) -> None:
    async with desk(agent, place) as person:
        await person.say(READ, WRITE)
        await person.asked()
        assert "milk" not in place.notes
        await person.approve()
        told = await person.told()
    assert "black" in told
    assert "noted milk" in told
    assert place.notes["milk"] == "buy"
    assert await place.open_questions() == []
    steps = await place.record()
    assert runs(steps) == [("read_note", "ok"), ("write_note", "ok")]
    assert [each["decision"] for each in steps[1]["confirmations"][0]["decisions"]] == ["approve"]


@AGENTS
async def test_a_write_that_a_person_left_waiting_is_approved_elsewhere_and_runs_once(
    agent: Agent, place: Place
) -> None:
    async with desk(agent, place) as person:
        await person.say(WRITE)
        await person.asked()
        person.screen.type("\x1b")
        assert "CONFIRMATION_REQUIRED" in await person.told()
        await place.approve()
        await person.say(WRITE)
        assert "noted milk" in await person.told()
        await person.say(WRITE)
        await person.asked()
    (ran, waits) = await place.record()
    assert runs([ran, waits]) == [("write_note", "ok"), ("write_note", "waiting")]
    assert len(ran["attempts"]) == 1
    (question,) = ran["confirmations"]
    assert [each["answer"] for each in question["put_off"]] == ["cancel"]


@AGENTS
async def test_an_answer_in_another_terminal_closes_the_dialog(agent: Agent, place: Place) -> None:
    async with desk(agent, place) as person:
        await person.say(WRITE)
        await person.asked()
        await place.approve()
        assert "noted milk" in await person.told()
    assert place.notes["milk"] == "buy"
    assert runs(await place.record()) == [("write_note", "ok")]


@AGENTS
async def test_a_person_who_takes_longer_than_the_agent_waits_for_a_tool_loses_nothing(
    agent: Agent, place: Place
) -> None:
    """Codex stops its clock; Claude Code with a limit gets "waiting" first, and its dialog stays for a late answer."""
    async with desk(agent, place, tool_s=round(PERSON_S * 2 / 3)) as person:
        await person.say(WRITE)
        await person.asked()
        await asyncio.to_thread(person.screen.watch, PERSON_S)
        if isinstance(agent, ClaudeCode):
            assert "CONFIRMATION_REQUIRED" in json.dumps(person.server.received[-1].body)
        await person.approve()
        if isinstance(agent, ClaudeCode):
            await person.sees(agent.idle)
            await person.say(WRITE)
        assert "noted milk" in await person.told()
    assert place.notes["milk"] == "buy"
    assert runs(await place.record()) == [("write_note", "ok")]
