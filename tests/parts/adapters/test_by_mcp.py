"""Frameworks that use the tools by MCP: the programs of docs/adapters.md run in them, with models on loopback.

They are large, so they are installed and tested only if that is asked for: `make frameworks`, REMIT_TEST_FRAMEWORKS=1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from remit import Remit
from remit.journal.event import HeadQuery
from remit.journal.kinds import ToolInvocationFinished, ToolInvocationStarted, decode
from remit_testing.models import AnthropicSpeech, Canned, ModelServer, Received, Scene, SceneCall, Streamed
from remit_testing.models.server import Response
from tests.parts.adapters.completions import scripted
from tests.parts.adapters.environment import ROOT, run

PAGE: Final = (ROOT / "docs/adapters.md").read_text(encoding="utf-8")
PYTHON: Final = dict(re.findall(r"^### ([^\n]+)\n```python\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
ANSWER: Final = Scene(text=("Only notes.txt.",))
_ARGUMENTS: Final = '{"path": "."}'


def by_chat(request: Received) -> Response:
    """crewAI asks as OpenAI's Chat Completions; its names of tools begin with the server's."""
    named = [tool["function"]["name"] for tool in request.body["tools"]]
    (name,) = [one for one in named if one.endswith("fs_list")]
    return scripted((Scene(calls=(SceneCall(name, _ARGUMENTS, "call_1"),), stop="tools"), ANSWER))(request)


def by_gemini(request: Received) -> Response:
    """ADK asks Gemini, not streamed."""
    done = "functionResponse" in request.raw.decode()
    part: dict[str, Any] = {"functionCall": {"name": "fs__list", "args": {"path": "."}}}
    content = {"role": "model", "parts": [{"text": ANSWER.text[0]} if done else part]}
    body = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": "served-1"}
    return Canned(status=200, body=msgspec.json.encode(body), headers={"content-type": "application/json"})


def by_messages(request: Received) -> Response:
    """The Claude Agent SDK's program asks as Anthropic's Messages, streamed."""
    if "count_tokens" in request.path:
        return Canned(status=200, body=b'{"input_tokens": 5}', headers={"content-type": "application/json"})
    asked = SceneCall("mcp__remit__fs__list", _ARGUMENTS, "toolu_1")
    done = "tool_result" in request.raw.decode()
    return Streamed(events=AnthropicSpeech().events(ANSWER if done else Scene(calls=(asked,), stop="tools")))


FRAMEWORKS: Final[dict[str, tuple[str, Callable[[Received], Response]]]] = {
    "Claude Agent SDK": ("claude", by_messages),
    "Google ADK": ("adk", by_gemini),
    "crewAI": ("crewai", by_chat),
}


def test_the_page_has_a_program_for_each_of_them() -> None:
    assert list(PYTHON) == list(FRAMEWORKS)
    for program in PYTHON.values():
        compile(program, "docs/adapters.md", "exec")


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("REMIT_TEST_FRAMEWORKS"), reason="1.7 GB: `make frameworks` installs them")
@pytest.mark.parametrize("title", FRAMEWORKS)
async def test_its_calls_pass_the_gate(title: str, tmp_path: Path) -> None:
    environment, answers = FRAMEWORKS[title]
    (tmp_path / "notes.txt").write_text("milk", encoding="utf-8")
    (tmp_path / "remit.toml").write_text('journal.url = "j.db"\n', encoding="utf-8")
    program = tmp_path / "program.py"
    program.write_text(PYTHON[title], encoding="utf-8")
    async with ModelServer(answers).listening() as server:
        ran = await run(f"frameworks/{environment}", program, tmp_path, server.url)
        assert any("notes.txt" in request.raw.decode() for request in server.received[1:])
    assert "Only notes.txt." in ran.out.splitlines()
    async with Remit(str(tmp_path / "j.db"), work=False) as remit:
        streams = [head.stream for head in await remit.runtime.journal.heads(HeadQuery(limit=20))]
        events = [event for stream in streams for event in await remit.runtime.journal.read(stream)]
    payloads = [decode(event.kind, event.data) for event in events]
    started = [one for one in payloads if isinstance(one, ToolInvocationStarted)]
    finished = [one for one in payloads if isinstance(one, ToolInvocationFinished)]
    assert [one.tool_name for one in started] == ["fs.list"]
    assert [one.outcome for one in finished] == ["success"]
