"""A model on loopback for coding agents: it speaks the wire that it is asked on, and plays one scene."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from remit_testing.models import (
    AnthropicSpeech,
    Canned,
    ChatSpeech,
    GeminiSpeech,
    Received,
    ResponsesSpeech,
    Scene,
    SceneCall,
    Speech,
    Streamed,
)

SPEECHES: Final[dict[str, Speech]] = {
    "/messages": AnthropicSpeech(),
    "/responses": ResponsesSpeech(),
    "/chat/completions": ChatSpeech(),
    "GenerateContent": GeminiSpeech(),
    "generateContent": GeminiSpeech(),
}


class Script:
    """Answers requests: first the calls of the scene, one a turn, then some words."""

    def __init__(self, scene: str, calls: list[tuple[str, dict[str, Any]]], answer: str = "All is done.") -> None:
        """Call each tool by the end of its name, with its arguments; `answer` is for who offers no tools."""
        self.scene = scene
        self.answer = answer
        self.calls = calls
        self.closing = ("All is ", "done.")
        """Said once the calls are made."""
        self.offered: list[list[str]] = []
        """The tools of each request that had any."""
        self.paths: list[str] = []
        self.said: list[str] = []
        """The bodies of those requests, as text."""

    def __call__(self, request: Received) -> Streamed | Canned:
        """Answer one request."""
        self.paths.append(request.path)
        path = request.path.partition("?")[0]
        if path.endswith(("count_tokens", "countTokens")):
            return Canned(status=200, body=b'{"input_tokens": 10, "totalTokens": 10}')
        speech = next((speech for end, speech in SPEECHES.items() if path.endswith(end)), None)
        if speech is None or not isinstance(request.body, dict):
            return Canned(status=404, body=b'{"error": {"message": "unknown", "code": 404}}')
        names = tools_of(request.body)
        if names:
            self.offered.append(names)
            self.said.append(json.dumps(request.body))
        return self._answer(speech, request.body, names, whole=not (request.body.get("stream") or "stream" in path))

    def _answer(self, speech: Speech, body: dict[str, Any], names: list[str], *, whole: bool) -> Streamed | Canned:
        if self.scene in {"500", "401"}:
            status = int(self.scene)
            return Canned(status=status, body=_error(speech, status))
        if self.scene == "hang":
            return Streamed(events=[], ends="never")
        scene = self._next(speech, body, names)
        events = [_spaced(event) for event in speech.events(scene)]
        if self.scene == "cut":
            return Streamed(events=events[:-2] or events[:1], ends="eof")
        if whole:
            is_claude = speech.name == "anthropic-messages"
            return Canned(status=200, body=json.dumps(_whole(scene)).encode() if is_claude else events[-1])
        return Streamed(events=events)

    def _next(self, speech: Speech, body: dict[str, Any], names: list[str]) -> Scene:
        done = len(speech.pairs(_plain(speech, body))[1])
        if not names:
            return Scene(text=tuple(self.answer.splitlines(keepends=True)))
        if done >= len(self.calls):
            return Scene(text=self.closing)
        wanted, args = self.calls[done]
        name = next((name for name in names if name.endswith(wanted)), wanted)
        call = SceneCall(name, json.dumps(args), id=f"call_{done}")
        return Scene(calls=(call,), stop="tools")


def tools_of(body: dict[str, Any]) -> list[str]:
    """Return the names of the tools that a request offers, on any wire."""
    found: list[str] = []
    for tool in body.get("tools") or ():
        if "functionDeclarations" in tool:
            found += [each["name"] for each in tool["functionDeclarations"]]
        elif tool.get("type") == "namespace":
            found += [f"{tool['name']}.{each['name']}" for each in tool.get("tools", ())]
        elif "function" in tool:
            found.append(tool["function"]["name"])
        else:
            found.append(tool.get("name") or tool.get("type"))
    return found


def _spaced(event: bytes) -> bytes:
    """Return an event of the Responses wire with the namespace of a call's name in its own field."""
    return re.sub(rb'"name":"(mcp__[a-z]+)\.', rb'"namespace":"\1","name":"', event)


def _plain(speech: Speech, body: dict[str, Any]) -> dict[str, Any]:
    """Return a request of which the speech can read the pairs: some agents write content as text."""
    if speech.name != "anthropic-messages":
        return body
    messages = [
        each | {"content": each["content"] if isinstance(each["content"], list) else []} for each in body["messages"]
    ]
    return body | {"messages": messages}


def _error(speech: Speech, status: int) -> bytes:
    failing = next(each for each in speech.failures() if each.canned.status == status) if status != 401 else None
    if failing is not None:
        return failing.canned.body
    kind = "authentication_error" if speech.name == "anthropic-messages" else "UNAUTHENTICATED"
    return json.dumps(
        {"type": "error", "error": {"type": kind, "code": 401, "status": kind, "message": "no such key"}}
    ).encode()


def _whole(scene: Scene) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": scene.model,
        "content": [{"type": "text", "text": "".join(scene.text) or "ok"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
