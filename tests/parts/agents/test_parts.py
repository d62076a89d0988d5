"""Agents as parts of runs, recipes as tools of agents, and both as nodes of plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import Recipe, Remit, Run, recipe, tool
from remit.errors import RunError
from remit.gateway.budget import Budget
from remit.jobs.plans.source import parse_plan
from remit.journal.kinds import ChildStarted, decode
from remit.models.message import Message, ToolMessage, system, user
from remit.settings import Settings, load

Scripted = Callable[..., Settings]
PLAN = """
version: taskgraph-v1
name: triage
inputs: {issue: {type: string}}
nodes:
  - id: urgent
    model:
      prompt: Is ${inputs.issue} urgent?
      output: {type: object, properties: {urgent: {type: boolean}}, required: [urgent]}
  - id: act
    agent: {task: "See to ${inputs.issue}", turns: 3}
    when: ${urgent.value.urgent}
output: ${act.value.answer}
"""


class Verdict(msgspec.Struct):
    urgent: bool
    why: str = ""


@tool("notes.read", level="L0")
async def read(name: str) -> str:
    """Read a note."""
    return f"the note {name}"


@recipe("lookup")
async def lookup(run: Run, name: str, times: int = 1) -> list[str]:
    """Look a note up.

    More than an agent needs to know.
    """
    return [str((await run.call("notes.read", {"name": name})).value) for _ in range(times)]


@recipe("unlucky")
async def unlucky(run: Run) -> None:
    """Fail."""
    await run.now()
    raise RunError("no luck")


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    def make(*steps: Any) -> Settings:
        (tmp_path / "script.yaml").write_bytes(msgspec.json.encode(steps))
        flags = {"models.default": "scripted:script.yaml", "journal.url": str(tmp_path / "j.db")}
        return load(cwd=tmp_path, file=None, env={}, flags=flags)

    return make


def _call(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"call": [{"tool": name, "args": args} for name, args in calls]}


async def _ran(
    settings: Settings, made: Recipe[..., Any], *recipes: Recipe[..., Any]
) -> tuple[Any, Remit, list[Message]]:
    """What a recipe without arguments returned, and its newest conversation; the replay agrees."""
    async with Remit(settings=settings, tools=[read], recipes=[made, *recipes], always_replay=True) as remit:
        job = await remit.start(made())
        result = await job
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        messages = await remit.service.conversations.messages(job.id)
        events = await remit.runtime.journal.read(f"job/{job.id}")
        started = [one for event in events if isinstance(one := decode(event.kind, event.data), ChildStarted)]
        assert [one.name for one in started][:1] == ["agent"]
    return result, remit, messages


async def test_a_recipe_has_an_agent_work_and_gets_a_typed_answer(scripted: Scripted) -> None:
    @recipe("triage")
    async def triage(run: Run) -> str:
        found = await run.agent(
            "Is it urgent?", tools=["notes.*"], output=Verdict, turns=5, budget=Budget(tokens=100_000)
        )
        assert isinstance(found.answer, Verdict)
        return f"{found.answer.urgent} {found.ended} {found.turns} {found.calls}"

    steps = (_call(("notes.read", {"name": "a"})), {"expect": "the note a", "say": '{"urgent": true, "why": "fire"}'})
    result, _, messages = await _ran(scripted(*steps), triage)
    assert result == "True answer 2 1"
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]


async def test_an_agent_in_a_run_that_meets_a_limit_says_so(scripted: Scripted) -> None:
    @recipe("short")
    async def short(run: Run) -> tuple[Any, str]:
        found = await run.agent("Go on.", tools=["notes.*"], output=Verdict, turns=1)
        return found.answer, found.ended

    result, _, _ = await _ran(scripted(_call(("notes.read", {"name": "a"}))), short)
    assert list(result) == [None, "turns"]


async def test_recipes_are_tools_of_an_agent_and_run_within_its_job(scripted: Scripted) -> None:
    @recipe("boss")
    async def boss(run: Run) -> Any:
        return (await run.agent("Look it up.", recipes=["look*", "unlucky", "agent"])).answer

    calls = _call(
        ("run.lookup", {"name": "a", "times": 2}),
        ("run.unlucky", {}),
        ("run.lookup", {"nam": "a"}),
        ("run.agent", {"task": "x"}),
        ("notes.read", {"name": "a"}),
    )
    result, _, messages = await _ran(scripted(calls, {"say": "Done."}), boss, lookup, unlucky)
    assert result == "Done."
    found = [block for block in messages[-2].blocks if isinstance(block, ToolMessage)]
    assert [one.failed for one in found] == [False, True, True, True, True]
    assert found[0].text == '["the note a","the note a"]'
    assert found[1].text == "The call failed (JOB_FAILED): no luck"
    assert found[2].text.startswith("Invalid arguments: lookup: ")
    assert found[3].text == found[4].text == "There is no tool of this name among those that you were offered."


async def test_a_model_is_asked_with_a_list_of_messages(scripted: Scripted) -> None:
    @recipe("listed")
    async def listed(run: Run) -> str:
        _ = await run.agent("First.")
        return (await run.model([system("Be brief."), user("Hello")])).text

    result, _, messages = await _ran(scripted({"say": "Hi."}), listed)
    assert result == "Hi."
    assert [message.role for message in messages] == ["system", "user", "assistant"]


async def test_models_and_agents_are_nodes_of_a_plan(scripted: Scripted) -> None:
    async with Remit(settings=scripted({"expect": "fire", "say": '{"urgent": true}'})) as remit:
        plan = parse_plan(PLAN)
        job = await remit.start_plan(plan, {"issue": "the fire"})
        assert await job == '{"urgent": true}'
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
