"""Chat Completions that are not streamed, which frameworks ask for unless they are told otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from remit_testing.models import Canned, Received, Scene
from remit_testing.models.server import Answers


def scripted(scenes: Sequence[Scene]) -> Answers:
    """Answer a conversation that holds so many answers with the next of these scenes."""

    def answer(request: Received) -> Canned:
        scene = scenes[sum(message["role"] == "assistant" for message in request.body["messages"])]
        message = {
            "role": "assistant",
            "content": "".join(scene.text) or None,
            "tool_calls": [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in scene.calls
            ],
        }
        body = {
            "id": "completion-1",
            "object": "chat.completion",
            "created": 1,
            "model": "served-1",
            "choices": [
                {
                    "index": 0,
                    "message": {name: value for name, value in message.items() if value},
                    "finish_reason": "tool_calls" if scene.calls else "stop",
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        return Canned(status=200, body=msgspec.json.encode(body), headers={"content-type": "application/json"})

    return answer
