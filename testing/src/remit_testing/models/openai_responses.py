"""Responses, as a server says it."""

from __future__ import annotations

from typing import Any, Final

from remit_testing.models.openai_chat import openai_failures
from remit_testing.models.scene import Failing, Scene, SceneCall, encode, pieces

_INCOMPLETE: Final = {"length": "max_output_tokens", "filtered": "content_filter"}


class ResponsesSpeech:
    """The wire (`remit_testing.models.scene.Speech`)."""

    name = "openai-responses"
    whole_calls = False

    def events(self, scene: Scene) -> list[bytes]:
        items: list[dict[str, Any]] = []
        events: list[dict[str, Any]] = [{"type": "response.created", "response": _response(scene, [], "in_progress")}]
        if scene.text or scene.refusal:
            events += _message(scene, items)
        for number, call in enumerate(scene.calls):
            last = number == len(scene.calls) - 1
            events += _call(call, number, items, cut=last and scene.stop == "length")
        reason = _INCOMPLETE.get(scene.stop)
        status = "incomplete" if reason else "completed"
        end = _response(scene, items, status) | {"incomplete_details": {"reason": reason} if reason else None}
        events.append({"type": f"response.{status}", "response": end})
        return [encode(event | {"sequence_number": number}) for number, event in enumerate(events)]

    def complete_after(self, scene: Scene) -> int:
        return len(self.events(scene))

    def error_event(self) -> bytes:
        error = {"code": "server_is_overloaded", "message": "at capacity"}
        failed = _response(Scene(), [], "failed") | {"error": error}
        return encode({"type": "response.failed", "response": failed, "sequence_number": 9})

    def unknown_event(self) -> bytes:
        return encode({"type": "response.weather.delta", "delta": "blue", "sequence_number": 9})

    def failures(self) -> list[Failing]:
        return openai_failures()

    def pairs(self, body: Any) -> tuple[list[str], list[str]]:
        items = body["input"]
        calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
        return calls, [item["call_id"] for item in items if item.get("type") == "function_call_output"]


def _response(scene: Scene, items: list[dict[str, Any]], status: str) -> dict[str, Any]:
    usage = {
        "input_tokens": scene.usage.input,
        "input_tokens_details": {"cached_tokens": scene.usage.cached, "cache_write_tokens": 0},
        "output_tokens": scene.usage.output,
        "output_tokens_details": {"reasoning_tokens": scene.usage.reasoning},
        "total_tokens": scene.usage.total,
    }
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": scene.model, "status": status}
    rest: dict[str, Any] = {
        "error": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
    }
    return head | rest | {"output": list(items), "usage": usage if status != "in_progress" else None}


def _message(scene: Scene, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    kind, words = ("refusal", pieces(scene.refusal)) if scene.refusal else ("output_text", list(scene.text))
    field = "refusal" if scene.refusal else "text"
    extra: dict[str, Any] = {} if scene.refusal else {"annotations": [], "logprobs": []}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": kind, field: "".join(words)} | extra
    items.append(item | {"status": "completed", "content": [part]})
    logs: dict[str, Any] = {} if scene.refusal else {"logprobs": []}
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", "part": {"type": kind, field: ""} | extra} | at,
        *({"type": f"response.{kind}.delta", "delta": piece} | at | logs for piece in words),
        {"type": f"response.{kind}.done", field: "".join(words)} | at | logs,
        {"type": "response.content_part.done", "part": part} | at,
        {"type": "response.output_item.done", "output_index": 0, "item": items[-1]},
    ]


def _call(call: SceneCall, number: int, items: list[dict[str, Any]], *, cut: bool) -> list[dict[str, Any]]:
    index, item_id = len(items), f"fc_{number}"
    item = {"id": item_id, "type": "function_call", "call_id": call.id or f"call_{number}", "name": call.name}
    at = {"item_id": item_id, "output_index": index}
    status = "incomplete" if cut else "completed"
    items.append(item | {"arguments": call.arguments, "status": status})
    started = item | {"arguments": "", "status": "in_progress"}
    done = {"type": "response.function_call_arguments.done", "arguments": call.arguments, "name": call.name}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": started},
        *({"type": "response.function_call_arguments.delta", "delta": piece} | at for piece in pieces(call.arguments)),
        done | at,
        {"type": "response.output_item.done", "output_index": index, "item": items[-1]},
    ]
