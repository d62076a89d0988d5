"""An agent that knows nothing of Remit: it asks a model, writes what the model wants, and says what the model says.

    python agent.py PROMPT

NOISE is added to what its tool returns; its tool reads the pipe `wait` if there is one; REACH is a URL that it opens.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

TOOL = {"type": "function", "function": {"name": "write", "parameters": {"type": "object"}}}


def ask(messages: list[dict[str, object]]) -> dict[str, object]:
    body = json.dumps({"model": "gpt-4o", "messages": messages, "tools": [TOOL], "user": str(os.getpid())}).encode()
    headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "content-type": "application/json"}
    request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, headers)  # noqa: S310 - the gateway's
    with urllib.request.urlopen(request) as response:  # noqa: S310 - the same
        message: dict[str, object] = json.load(response)["choices"][0]["message"]
        return message


def main(prompt: str) -> int:
    if url := os.environ.get("REACH"):
        with suppress(urllib.error.URLError):
            urllib.request.urlopen(url)  # noqa: S310 - the test's
    messages: list[dict[str, object]] = [{"role": "user", "content": prompt}]
    while True:
        try:
            message = ask(messages)
        except urllib.error.HTTPError as error:
            sys.stderr.write(error.read().decode())
            return 3
        messages.append(message)
        calls = message.get("tool_calls")
        if not isinstance(calls, list):
            sys.stdout.write(f"{message['content']}\n")
            return 0
        for call in calls:
            Path("out.txt").write_text(call["function"]["arguments"], encoding="utf-8")
            if Path("wait").exists():
                Path("wait").read_bytes()
            told = f"written {os.environ.get('NOISE', '')}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
