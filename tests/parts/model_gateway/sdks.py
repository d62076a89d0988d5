"""A program: asks by the official SDK of a provider, as its environment says, and prints what it was told as JSON.

python -S sdks.py openai|responses|anthropic|google plain|stream|count|models
"""

from __future__ import annotations

import json
import sys
from typing import Any


def openai(mode: str) -> Any:
    from openai import OpenAI  # noqa: PLC0415 - each run has one SDK

    client = OpenAI(max_retries=0)
    if mode == "models":
        return [model.id for model in client.models.list()]
    asked: Any = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
    if mode == "plain":
        return client.chat.completions.create(**asked).model_dump()
    return [chunk.model_dump() for chunk in client.chat.completions.create(**asked, stream=True)]


def responses(mode: str) -> Any:
    from openai import OpenAI  # noqa: PLC0415 - each run has one SDK

    client = OpenAI(max_retries=0)
    if mode == "plain":
        return client.responses.create(model="gpt-4o", input="hi").model_dump()
    return [event.model_dump() for event in client.responses.create(model="gpt-4o", input="hi", stream=True)]


def anthropic(mode: str) -> Any:
    from anthropic import Anthropic  # noqa: PLC0415 - the same

    client = Anthropic(max_retries=0)
    asked: Any = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]}
    if mode == "count":
        return client.messages.count_tokens(**asked).model_dump()
    if mode == "plain":
        return client.messages.create(**asked, max_tokens=50).model_dump()
    with client.messages.stream(**asked, max_tokens=50) as stream:
        return [[event.model_dump() for event in stream], stream.get_final_message().model_dump()]


def google(mode: str) -> Any:
    from google import genai  # noqa: PLC0415 - the same

    client = genai.Client()
    if mode == "count":
        return client.models.count_tokens(model="gemini-2.5-flash", contents="hi").total_tokens
    if mode == "plain":
        return client.models.generate_content(model="gemini-2.5-flash", contents="hi").text
    return [chunk.text for chunk in client.models.generate_content_stream(model="gemini-2.5-flash", contents="hi")]


if __name__ == "__main__":
    told = globals()[sys.argv[1]](sys.argv[2])
    sys.stdout.write(json.dumps(told, default=str, sort_keys=True))
