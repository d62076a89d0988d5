"""The official SDKs are told the same through the gateway as by their provider; their requests are the same bytes."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from remit.journal.kinds import CommandCommitted
from remit_testing.models import Canned, Received, Streamed
from tests.parts.model_gateway.test_part import CALLS, SPEECHES
from tests.parts.model_gateway.world import world

PROGRAM: Final = Path(__file__).with_name("sdks.py")
PEERS: Final = Path(__file__).parents[3] / "build" / "peers-sdks"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (PEERS / "openai").exists(), reason="needs build/peers-sdks: make peers"),
]
CASES: Final = [
    *(("openai", mode) for mode in ("plain", "stream", "models")),
    *(("responses", mode) for mode in ("plain", "stream")),
    *(("anthropic", mode) for mode in ("plain", "stream", "count")),
    *(("google", mode) for mode in ("plain", "stream", "count")),
]
WIRES: Final = {"openai": "chat", "responses": "responses", "anthropic": "messages", "google": "gemini"}


def answers(request: Received) -> Streamed | Canned:
    """Answer as the wire does, in one piece where that is wanted."""
    path = request.path
    if path.endswith("/models"):
        return Canned(
            status=200, body=b'{"object":"list","data":[{"id":"gpt-4o","object":"model","created":1,"owned_by":"x"}]}'
        )
    if "count" in path:
        return Canned(status=200, body=b'{"input_tokens":7,"totalTokens":7}')
    name = next(name for name, end in ENDS.items() if end in path)
    events = SPEECHES[WIRES[name]].events(CALLS)
    if request.body.get("stream") or "stream" in path:
        return Streamed(events=events)
    return Canned(status=200, body=_whole(name, events))


ENDS: Final = {"openai": "completions", "responses": "responses", "anthropic": "messages", "google": "enerateContent"}


def _whole(name: str, events: list[bytes]) -> bytes:
    if name == "google":
        return events[-1]
    if name == "responses":
        return json.dumps(json.loads(events[-1])["response"]).encode()
    usage: dict[str, Any]
    if name == "anthropic":
        usage = {"input_tokens": 20, "output_tokens": 3}
        text = [{"type": "text", "text": "ok"}]
        return json.dumps(
            {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "x",
                "content": text,
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": usage,
            }
        ).encode()
    usage = {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "x", "choices": [choice], "usage": usage}
    ).encode()


async def told(url: str, openai: str, sdk: str, mode: str) -> Any:
    """Return what the SDK was told at a base URL."""
    env = {
        "PYTHONPATH": str(PEERS),
        "OPENAI_BASE_URL": openai,
        "ANTHROPIC_BASE_URL": url if openai.startswith(f"{url}/v1") else f"{url}/anthropic",
        "GOOGLE_GEMINI_BASE_URL": url if openai.startswith(f"{url}/v1") else f"{url}/gemini",
        **{f"{name}_API_KEY": "k3y" for name in ("OPENAI", "ANTHROPIC", "GEMINI")},
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-S", str(PROGRAM), sdk, mode), env=env, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(out)


@pytest.mark.parametrize(("sdk", "mode"), CASES)
async def test_an_sdk_is_told_the_same(sdk: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(answers, monkeypatch) as gateway:
        direct = await told(gateway.provider.url, f"{gateway.provider.url}/v1", sdk, mode)
        passed = await told(gateway.url, f"{gateway.url}/openai/v1", sdk, mode)
        assert passed == direct
        first, second = gateway.provider.received
        assert (first.raw, first.path) == (second.raw, second.path)
        outcomes = [event.outcome for event in await gateway.events(CommandCommitted)]
        assert outcomes == ([] if mode == "models" else ["success"])
