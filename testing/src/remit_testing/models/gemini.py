"""Gemini, as a server says it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from remit.models.faults import Auth, Busy, ContextFull, Overloaded, Quota, Rejected, ServerFault, UnknownModel
from remit_testing.models.scene import Canned, Failing, Scene, canned, encode, pieces

_STOPS: Final = {
    "answer": "STOP",
    "tools": "STOP",
    "length": "MAX_TOKENS",
    "filtered": "SAFETY",
    "paused": "CONTINUATION",
    "failed": "MALFORMED_FUNCTION_CALL",
}
_TYPE: Final = "type.googleapis.com/google.rpc."


class GeminiSpeech:
    """The wire (`remit_testing.models.scene.Speech`)."""

    name = "gemini"
    whole_calls = True

    def events(self, scene: Scene) -> list[bytes]:
        parts: list[dict[str, Any]] = [{"text": piece} for piece in [*scene.text, *pieces(scene.refusal)]]
        for call in scene.calls:
            named = {"name": call.name, "args": msgspec.json.decode(call.arguments or "{}")}
            parts.append({"functionCall": named | ({"id": call.id} if call.id else {})})
        chunks = [self._chunk(scene, {"content": {"role": "model", "parts": [part]}, "index": 0}) for part in parts]
        usage = {
            "promptTokenCount": scene.usage.input,
            "cachedContentTokenCount": scene.usage.cached,
            "candidatesTokenCount": scene.usage.output - scene.usage.reasoning,
            "thoughtsTokenCount": scene.usage.reasoning,
            "totalTokenCount": scene.usage.total,
        }
        end = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": _STOPS[scene.stop], "index": 0}
        return [*map(encode, chunks), encode(self._chunk(scene, end) | {"usageMetadata": usage})]

    def complete_after(self, scene: Scene) -> int:
        return len(self.events(scene))

    def error_event(self) -> bytes:
        return encode({"error": {"code": 503, "message": "at capacity", "status": "UNAVAILABLE"}})

    def unknown_event(self) -> bytes:
        return encode({"weather": {"sky": "blue"}})

    def failures(self) -> list[Failing]:
        def error(status: int, kind: str, message: str = "so it is", *details: Any) -> Canned:
            body = {"code": status, "message": message, "status": kind, "details": list(details)}
            return canned(status, {"error": body})

        delay = {"@type": f"{_TYPE}RetryInfo", "retryDelay": "7.5s"}
        daily = {"@type": f"{_TYPE}QuotaFailure", "violations": [{"quotaId": "RequestsPerDayPerProject"}]}
        wrapped = canned(503, [{"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}])
        return [
            Failing(canned=error(429, "RESOURCE_EXHAUSTED", "slow", delay), fault=Busy, after_s=7.5),
            Failing(canned=error(429, "RESOURCE_EXHAUSTED", "quota", daily), fault=Quota),
            Failing(canned=wrapped, fault=Overloaded),
            Failing(canned=error(500, "INTERNAL"), fault=ServerFault),
            Failing(canned=error(400, "INVALID_ARGUMENT"), fault=Rejected),
            Failing(canned=error(400, "INVALID_ARGUMENT", "The input token count (9) exceeds"), fault=ContextFull),
            Failing(canned=error(403, "PERMISSION_DENIED"), fault=Auth),
            Failing(canned=error(404, "NOT_FOUND"), fault=UnknownModel),
        ]

    def pairs(self, body: Any) -> tuple[list[str], list[str]]:
        parts = [part for content in body["contents"] for part in content["parts"]]
        calls = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        return calls, [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]

    def _chunk(self, scene: Scene, candidate: dict[str, Any]) -> dict[str, Any]:
        return {"candidates": [candidate], "modelVersion": scene.model, "responseId": "r-1"}
