"""Agents of LangChain, pydantic-ai and the OpenAI Agents SDK end the same through the gateway, on the same bytes."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from remit.journal.kinds import CommandCommitted
from remit.parts.model_gateway.kinds import ModelGatewayAnswered
from remit_testing.models import Canned, Received
from tests.parts.model_gateway.world import world

PROGRAM: Final = Path(__file__).with_name("frameworks.py")
PYTHON: Final = Path(__file__).parents[3] / "build" / "adapters" / "bin" / "python"
FRAMEWORKS: Final = ("langchain", "pydantic-ai", "pydantic-ai-responses", "openai-agents")
ADD: Final = {"name": "add", "arguments": '{"a": 1, "b": 2}'}
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PYTHON.exists(), reason="needs build/adapters: make peers")]


def answers(request: Received) -> Canned:
    """Want one call of the tool, then say goodbye, on either wire."""
    body = request.body
    answer = _response(body["input"]) if request.path.endswith("responses") else _completion(body["messages"])
    return Canned(status=200, body=json.dumps(answer).encode())


def _completion(messages: list[dict[str, Any]]) -> dict[str, Any]:
    done = any(message["role"] == "tool" for message in messages)
    call = {"id": "call_1", "type": "function", "function": ADD}
    message = {"role": "assistant", "content": "bye"} if done else {"role": "assistant", "tool_calls": [call]}
    usage = {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}
    choice = {"index": 0, "finish_reason": "stop" if done else "tool_calls", "message": message}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [choice],
        "usage": usage,
    }


def _response(items: list[dict[str, Any]]) -> dict[str, Any]:
    done = any(item.get("type") == "function_call_output" for item in items)
    text = {"type": "output_text", "text": "bye", "annotations": []}
    said = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    call = {"type": "function_call", "id": "f", "call_id": "call_1", "status": "completed", **ADD}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 20, "output_tokens": 3, "total_tokens": 23, **details}
    return {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "gpt-4o",
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
        "output": [said if done else call],
    }


async def told(framework: str, url: str) -> str:
    """Return what an agent printed whose models are at a URL."""
    env = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "k3y",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }
    process = await asyncio.create_subprocess_exec(
        *(str(PYTHON), str(PROGRAM), framework), env=env, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_an_agent_of_a_framework_ends_the_same(framework: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(answers, monkeypatch) as gateway:
        direct = await told(framework, f"{gateway.provider.url}/v1")
        passed = await told(framework, f"{gateway.url}/openai/v1")
        assert (passed, direct) == ("1 + 2\nbye\n", "1 + 2\nbye\n")
        sent = [(request.path, request.raw) for request in gateway.provider.received]
        assert sent[2:] == sent[:2]
        assert [event.outcome for event in await gateway.events(CommandCommitted)] == ["success"] * 2
        assert [event.wanted for event in await gateway.events(ModelGatewayAnswered)] == [{"call_1": "add"}, {}]
