"""Messages, as a server says it."""

from __future__ import annotations

from typing import Any, Final

from remit.models.faults import Auth, Busy, ContextFull, Overloaded, Quota, Rejected, ServerFault, Timeout, UnknownModel
from remit_testing.models.scene import Canned, Failing, Scene, canned, encode, pieces

_STOPS: Final = {
    "answer": "end_turn",
    "tools": "tool_use",
    "length": "max_tokens",
    "paused": "pause_turn",
    "refused": "refusal",
    "context_full": "model_context_window_exceeded",
}


class AnthropicSpeech:
    """The wire (`remit_testing.models.scene.Speech`)."""

    name = "anthropic-messages"
    whole_calls = False

    def events(self, scene: Scene) -> list[bytes]:
        usage = {
            "input_tokens": scene.usage.input - scene.usage.cached,
            "cache_read_input_tokens": scene.usage.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": 1,
        }
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": scene.model, "content": []}
        message = head | {"stop_reason": None, "stop_sequence": None, "usage": usage}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": message}, {"type": "ping"}]
        blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        words = [*scene.text, *pieces(scene.refusal)]
        if words:
            deltas = [{"type": "text_delta", "text": piece} for piece in words]
            blocks.append(({"type": "text", "text": ""}, deltas))
        for number, call in enumerate(scene.calls):
            start = {"type": "tool_use", "id": call.id or f"toolu_{number}", "name": call.name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in ["", *pieces(call.arguments)]]
            blocks.append((start, deltas))
        for index, (start, deltas) in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": start})
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        stop = {"stop_reason": _STOPS[scene.stop], "stop_sequence": None}
        details = {"thinking_tokens": scene.usage.reasoning}
        end = {"output_tokens": scene.usage.output, "output_tokens_details": details}
        events += [{"type": "message_delta", "delta": stop, "usage": end}, {"type": "message_stop"}]
        return [encode(event) for event in events]

    def complete_after(self, scene: Scene) -> int:
        return len(self.events(scene))

    def error_event(self) -> bytes:
        error = {"type": "overloaded_error", "message": "at capacity"}
        return encode({"type": "error", "error": error, "request_id": "req_1"})

    def unknown_event(self) -> bytes:
        return encode({"type": "weather_delta", "delta": "blue"})

    def failures(self) -> list[Failing]:
        def error(status: int, kind: str, message: str = "so it is", **headers: str) -> Canned:
            body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
            return canned(status, body, **headers)

        spent = {"type": "rate_limit_error", "message": "x", "details": {"error_code": "enforced_spend_limit_reached"}}
        return [
            Failing(canned=error(429, "rate_limit_error", retry_after="7"), fault=Busy, after_s=7),
            Failing(canned=canned(429, {"type": "error", "error": spent}), fault=Quota),
            Failing(canned=error(402, "billing_error"), fault=Quota),
            Failing(canned=error(529, "overloaded_error"), fault=Overloaded),
            Failing(canned=error(500, "api_error"), fault=ServerFault),
            Failing(canned=error(504, "timeout_error"), fault=Timeout),
            Failing(canned=error(400, "invalid_request_error"), fault=Rejected),
            Failing(canned=error(400, "invalid_request_error", "prompt is too long: 9 > 8"), fault=ContextFull),
            Failing(canned=error(413, "request_too_large"), fault=ContextFull),
            Failing(canned=error(401, "authentication_error"), fault=Auth),
            Failing(canned=error(404, "not_found_error"), fault=UnknownModel),
        ]

    def pairs(self, body: Any) -> tuple[list[str], list[str]]:
        blocks = [block for message in body["messages"] for block in message["content"]]
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        return calls, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
