"""The models of an executor's agent are asked through the gate: within the run's budget, by its step, with our key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remit import Remit
from remit.parts.work.executors.registry import hand_of
from remit.parts.work.workflow import ExecutorTable, Workflow
from remit.settings import load
from remit_testing.models import Canned, ModelServer
from tests.parts.work.executors.shop import ALLOWED, Shop

ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m-1",
    "content": [{"type": "text", "text": "yes"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 5},
}
pytestmark = pytest.mark.slow


async def run(shop: Shop, server: ModelServer, more: str = "", **flags: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Run an agent that asks its model; the result, and the steps of the job."""
    shop.hand_to("claude", "asks", more=more)
    file = shop.folder / "workflow.toml"
    file.write_text(file.read_text().replace("http://127.0.0.1:9/v1", server.url))
    given = {
        "app.principal": "alice",
        "journal.url": str(shop.place / "journal.db"),
        "policy.rules": ALLOWED,
        **{name.replace("__", "."): value for name, value in flags.items()},
    }
    async with Remit(settings=load(env={}, cwd=shop.folder, flags=given)) as remit:
        work: Any = remit.service.work
        started = await work.start(await work.issue("Mend the clock", body="It is broken."), "claude")
        await remit.ended(started.job)
        view = await work.view(started.issue_ref)
        steps = (await remit.service.jobs.view(started.job)).steps
        return view.results.get(started.run_id), [(step.step, step.name) for step in steps]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("AGENT_KEY", "k3y")
    return Shop(tmp_path)


def served() -> ModelServer:
    return ModelServer(lambda _: Canned(status=200, body=json.dumps(ANSWER).encode()))


async def test_what_an_agent_asks_stands_below_its_run(shop: Shop) -> None:
    async with served().listening() as server:
        result, steps = await run(shop, server)
    assert result.status == "ok", result
    (step,) = [step for step in steps if step[1] == "model.anthropic:m-1"]
    (executor,) = [step for step, name in steps if name == "tool.executor.claude"]
    assert step[0] == f"{executor}/1"
    assert [request.headers["x-api-key"] for request in server.received] == ["k3y"]


async def test_a_run_ends_at_its_budget(shop: Shop) -> None:
    async with served().listening() as server:
        result, _ = await run(shop, server, "tokens = 20\n")
    assert (result.status, server.received) == ("fail", [])


@pytest.mark.parametrize(("more", "status"), [("", "ok"), ("tokens = 20\n", "fail")])
async def test_without_a_gate_it_asks_its_model_itself_unless_it_has_a_budget(
    shop: Shop, more: str, status: str
) -> None:
    async with served().listening() as server:
        result, steps = await run(shop, server, more, model_gateway__executors=False)
    assert result.status == status, result
    assert not [name for _, name in steps if name.startswith("model.")]
    assert len(server.received) == (status == "ok")


def test_from_the_sandbox_it_reaches_no_model_but_the_gate() -> None:
    hand = hand_of(Workflow(executors={"claude": ExecutorTable(agent="claude", network=("a.test",))}), "claude")
    assert hand.behind("http://127.0.0.1:5/anthropic").table.network == ("a.test", "127.0.0.1:5")
    bare = hand_of(Workflow(), "claude")
    assert bare.table.network == ("api.anthropic.com",)
    assert bare.behind("http://127.0.0.1:5/anthropic").table.network == ("127.0.0.1:5",)


@pytest.mark.parametrize(("agent", "url", "wire"), [("opencode", "", ""), ("opencode", "http://m.test/v1", "openai")])
def test_an_agent_that_is_told_no_address_asks_its_model_itself(agent: str, url: str, wire: str) -> None:
    hand = hand_of(Workflow(executors={agent: ExecutorTable(agent=agent, base_url=url)}), agent)
    model = hand.model({})
    assert (model.wire if model is not None else "") == wire
