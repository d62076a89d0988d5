"""An agent at providers that hold it to what was sent, refuse what they do not take, or say nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import Remit
from remit.app import JobEndedError
from remit.codes import Code
from remit.journal.kinds import CommandCommitted, CommandStarted, decode
from remit.parts.agents.recipes import agent
from remit.settings import load
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.stub import StubProvider
from remit_testing.models import (
    AnthropicSpeech,
    Canned,
    ChatSpeech,
    ModelServer,
    Received,
    ResponsesSpeech,
    Scene,
    SceneCall,
    Streamed,
)
from tests.patience import PATIENCE_S

UNION: dict[str, Any] = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "anyOf": [{"required": ["title"]}, {"required": ["url"], "properties": {"url": {"type": "string"}}}],
}
FILTER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "page": {"type": "integer"},
        "filter": {"type": "object", "properties": {"state": {"type": "string"}, "by": {"type": "string"}}},
    },
    "required": ["query"],
}
NULLS = '{"query":"x","page":null,"filter":{"state":"open","by":null}}'


def _meta(name: str, schema: dict[str, Any]) -> ToolMeta:
    return ToolMeta(
        name=name,
        provider_id="desk",
        description="Does it.",
        input_schema=schema,
        capability_level=Level.L0,
        risk_level=Risk.READ_ONLY,
        side_effects=False,
        requires_confirm=False,
    )


class _Desk:
    """Tools whose calls are remembered."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def provider(self) -> StubProvider:
        metas = [_meta("desk.search", FILTER), _meta("desk.create", UNION)]
        return StubProvider(metas, {"desk.search": self._called}, provider_id="desk")

    def _called(self, args: dict[str, Any]) -> str:
        self.calls.append(args)
        return "found"


Served = Callable[..., Any]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    """A Remit whose model is a server on loopback that gives these answers."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")

    @asynccontextmanager
    async def open_served(
        model: str, answers: Callable[[Received], Any], desk: _Desk | None = None
    ) -> AsyncIterator[tuple[Remit, ModelServer]]:
        async with ModelServer(answers).listening() as server:
            flags = {
                "models.default": model.replace("URL", server.url),
                "models.openai_url": server.url,
                "models.anthropic_url": server.url,
                "journal.url": str(tmp_path / "j.db"),
            }
            settings = load(cwd=tmp_path, file=None, env={}, flags=flags)
            providers = [desk.provider()] if desk is not None else []
            async with Remit(settings=settings, providers=providers) as remit:
                yield remit, server

    return open_served


def _in_turn(*events: list[bytes]) -> Callable[[Received], Streamed]:
    left = list(events)
    return lambda _: Streamed(events=left.pop(0) if len(left) > 1 else left[0])


async def _events(remit: Remit, job: str) -> list[Any]:
    return [decode(event.kind, event.data) for event in await remit.runtime.journal.read(f"job/{job}")]


async def test_optional_arguments_that_a_strict_model_leaves_out_are_left_out(served: Served) -> None:
    desk, speech = _Desk(), ResponsesSpeech()
    calls = Scene(calls=(SceneCall("desk__search", NULLS),), stop="tools")
    answers = _in_turn(speech.events(calls), speech.events(Scene(text=("Found.",))))
    async with served("openai:m", answers, desk) as (remit, server):
        job = await remit.start(agent(task="Look.", tools=["desk.*"]))
        assert (await asyncio.wait_for(job.result(), PATIENCE_S)).answer == "Found."
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    sent = {one["name"]: one for one in server.received[0].body["tools"]}
    assert sent["desk__search"]["strict"]
    assert desk.calls == [{"query": "x", "filter": {"state": "open"}}]


async def test_one_tool_with_a_union_at_its_root_costs_no_other_its_use(served: Served) -> None:
    def answers(received: Received) -> Any:
        unions = [one for one in received.body["tools"] if one["input_schema"].keys() & {"anyOf", "oneOf", "allOf"}]
        if unions:
            error = {"type": "invalid_request_error", "message": "input_schema does not support anyOf at the top level"}
            return Canned(status=400, body=msgspec.json.encode({"type": "error", "error": error}))
        return Streamed(events=AnthropicSpeech().events(Scene(text=("Hi.",))))

    async with served("anthropic:m", answers, _Desk()) as (remit, _):
        job = await remit.start(agent(task="Say hi.", tools=["desk.*"]))
        assert (await asyncio.wait_for(job.result(), PATIENCE_S)).answer == "Hi."


@pytest.mark.parametrize("stop", ["answer", "tools"])
async def test_an_empty_reply_is_asked_again_and_is_never_an_answer(served: Served, stop: Any) -> None:
    speech = ChatSpeech()
    empty, whole = speech.events(Scene(stop=stop)), speech.events(Scene(text=("Done.",)))
    async with served("openai-compatible:URL#m", _in_turn(empty, empty, whole)) as (remit, server):
        job = await remit.start(agent(task="Do it."))
        assert (await asyncio.wait_for(job.result(), PATIENCE_S)).answer == "Done."
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        reasons = [one.finish_reason for one in await _events(remit, job.id) if isinstance(one, CommandCommitted)]
    assert reasons == ["empty", "empty", "answer"]
    assert all(one.body["messages"] == server.received[0].body["messages"] for one in server.received)


async def test_three_empty_replies_are_a_failure(served: Served) -> None:
    async with served("openai-compatible:URL#m", _in_turn(ChatSpeech().events(Scene()))) as (remit, server):
        with pytest.raises(JobEndedError) as caught:
            await (await remit.start(agent(task="Do it.")))
        assert caught.value.code is Code.MODEL_EMPTY
        assert len(server.received) == 3


async def test_a_tool_that_is_left_out_is_named_in_the_record(served: Served) -> None:
    odd = _meta("desk.odd", {"type": "object", "properties": {"$x": {}}, "required": ["$x"]})

    class Odd(_Desk):
        def provider(self) -> StubProvider:
            return StubProvider([odd, _meta("desk.search", FILTER)], provider_id="desk")

    answers = _in_turn(AnthropicSpeech().events(Scene(text=("Hi.",))))
    async with served("anthropic:m", answers, Odd()) as (remit, server):
        job = await remit.start(agent(task="Say hi.", tools=["desk.*"]))
        await asyncio.wait_for(job.result(), PATIENCE_S)
        (started,) = [one for one in await _events(remit, job.id) if isinstance(one, CommandStarted)]
    assert [one["name"] for one in server.received[0].body["tools"]] == ["desk__search", "agent__read_result"]
    assert started.left_out.keys() == {"desk__odd"}
