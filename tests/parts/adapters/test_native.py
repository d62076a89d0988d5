"""The adapters in the real frameworks, whose models are scripted: results, call ids, approvals, and once only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remit import Remit
from remit.journal.event import HeadQuery
from remit.journal.kinds import ToolInvocationFinished, decode
from remit_testing.models import ModelServer, Scene, SceneCall
from tests.parts.adapters.completions import scripted
from tests.parts.adapters.environment import PROGRAMS, run

pytestmark = pytest.mark.slow

CALLS = (
    SceneCall("desk__write", '{"text": "milk"}', "call_write"),
    SceneCall("desk__look", '{"at": "moon"}', "call_look"),
    SceneCall("desk__look", '{"to": "moon"}', "call_wrong"),
)
SCENES = (Scene(calls=CALLS, stop="tools"), Scene(text=("Done.",)))


@pytest.mark.parametrize(
    ("program", "repeated"),
    [("run_pydantic_ai", ()), ("run_langgraph", ("thread",)), ("run_openai_agents", ())],
    ids=["pydantic-ai", "langgraph", "openai-agents"],
)
async def test_calls_pass_the_gate_and_are_made_once_under_the_frameworks_own_ids(
    tmp_path: Path, program: str, repeated: tuple[str, ...]
) -> None:
    async with ModelServer(scripted(SCENES)).listening() as server:
        path = PROGRAMS / f"{program}.py"
        first = json.loads((await run("adapters", path, tmp_path, server.url, "approve")).out)
        again = json.loads((await run("adapters", path, tmp_path, server.url, *repeated)).out)
        offered = {tool["function"]["name"] for tool in server.received[0].body["tools"]}
        sent = {each["tool_call_id"] for each in server.received[1].body["messages"] if "tool_call_id" in each}
    assert again == first
    assert first["answer"] == "Done."
    results = dict(first["results"])
    assert (results["call_write"], results["call_look"]) == ("wrote milk", "MOON")
    assert "Invalid arguments" in results["call_wrong"]
    assert sent == {"call_write", "call_look", "call_wrong"}
    assert offered == {"desk__write", "desk__look"}
    assert (tmp_path / "written").read_text() == "milk\n"

    async with Remit(str(tmp_path / "desk.db"), work=False) as remit:
        heads = await remit.runtime.journal.heads(HeadQuery(kind="call", limit=9))
        events = [event for head in heads for event in await remit.runtime.journal.read(head.stream)]
        finished = [
            one for event in events if isinstance(one := decode(event.kind, event.data), ToolInvocationFinished)
        ]
    assert len(heads) == 3
    assert len(finished) == 2


async def test_a_run_of_pydantic_ai_ends_for_an_approval_and_goes_on_after_it(tmp_path: Path) -> None:
    scenes = (Scene(calls=CALLS[:1], stop="tools"), Scene(text=("Done.",)))
    async with ModelServer(scripted(scenes)).listening() as server:
        ran = await run("adapters", PROGRAMS / "defer_pydantic_ai.py", tmp_path, server.url)
    assert json.loads(ran.out) == {"deferred": "call_write", "answer": "Done."}
    assert (tmp_path / "written").read_text() == "milk\n"
