"""Chat Completions, as a server says it."""

from __future__ import annotations

from typing import Any, Final

from remit.models.faults import Auth, Busy, ContextFull, Overloaded, Quota, Rejected, ServerFault, UnknownModel
from remit_testing.models.scene import Failing, Scene, canned, encode, pieces

_STOPS: Final = {"answer": "stop", "tools": "tool_calls", "length": "length", "filtered": "content_filter"}


class ChatSpeech:
    """The wire (`remit_testing.models.scene.Speech`)."""

    name = "openai-chat"
    whole_calls = False

    def events(self, scene: Scene) -> list[bytes]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in scene.text]
        deltas += [{"refusal": piece} for piece in pieces(scene.refusal)]
        for index, call in enumerate(scene.calls):
            head = {"index": index, "id": call.id or f"call_{index}", "type": "function"}
            deltas.append({"tool_calls": [head | {"function": {"name": call.name, "arguments": ""}}]})
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces(call.arguments)
            ]
        chunks = [self._chunk(scene, [_choice(delta, None)]) for delta in deltas]
        chunks.append(self._chunk(scene, [_choice({}, _STOPS.get(scene.stop, "stop"))]))
        usage = {
            "prompt_tokens": scene.usage.input,
            "completion_tokens": scene.usage.output,
            "total_tokens": scene.usage.total,
            "prompt_tokens_details": {"cached_tokens": scene.usage.cached},
            "completion_tokens_details": {"reasoning_tokens": scene.usage.reasoning},
        }
        chunks.append(self._chunk(scene, []) | {"usage": usage})
        return [*map(encode, chunks), b"[DONE]"]

    def complete_after(self, scene: Scene) -> int:
        return len(self.events(scene)) - 2

    def error_event(self) -> bytes:
        return encode({"error": {"message": "at capacity", "type": "server_error", "code": "server_is_overloaded"}})

    def unknown_event(self) -> bytes:
        return encode({"object": "chat.completion.weather", "sky": "blue"})

    def failures(self) -> list[Failing]:
        return openai_failures()

    def pairs(self, body: Any) -> tuple[list[str], list[str]]:
        messages = body["messages"]
        calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
        return calls, [message["tool_call_id"] for message in messages if message["role"] == "tool"]

    def _chunk(self, scene: Scene, choices: list[dict[str, Any]]) -> dict[str, Any]:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": scene.model}
        return head | {"choices": choices}


def _choice(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def openai_failures() -> list[Failing]:
    """Failures of OpenAI's two wires."""

    def error(status: int, kind: str, code: str | None, **headers: str) -> Any:
        return canned(status, {"error": {"message": f"about {code}", "type": kind, "code": code}}, **headers)

    limit = error(429, "tokens", "rate_limit_exceeded", retry_after="7")
    soon = error(429, "requests", "rate_limit_exceeded", retry_after_ms="1500", retry_after="7")
    return [
        Failing(canned=limit, fault=Busy, after_s=7),
        Failing(canned=soon, fault=Busy, after_s=1.5),
        Failing(canned=error(429, "insufficient_quota", "insufficient_quota"), fault=Quota),
        Failing(canned=error(503, "server_error", "server_is_overloaded"), fault=Overloaded),
        Failing(canned=error(500, "server_error", None), fault=ServerFault),
        Failing(canned=error(400, "invalid_request_error", None), fault=Rejected),
        Failing(canned=error(400, "invalid_request_error", "context_length_exceeded"), fault=ContextFull),
        Failing(canned=error(401, "invalid_request_error", "invalid_api_key"), fault=Auth),
        Failing(canned=error(404, "invalid_request_error", "model_not_found"), fault=UnknownModel),
    ]
