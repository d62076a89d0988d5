"""A client over HTTP that reads and writes notes until it is killed or has made its calls. Needs only Python.

python caller.py URL TOKEN SEED CALLS

It prints a line for each answer: `ok`, or the code of the outcome. Asked by Remit, it approves, closes the question,
or dies with its dialog open.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

TOPICS = ("tea", "milk", "rice", "soup")
WRITES = 0.1
VERSION = "2025-11-25"


class Caller:
    """One session."""

    def __init__(self, url: str, token: str, chance: random.Random) -> None:
        self._place = urlsplit(url)
        self._chance = chance
        self._token = token
        self._session: dict[str, str] = {}
        self._calls = self._connection()
        self._number = 0

    def begin(self) -> None:
        """Say hello."""
        client = {"name": "caller", "version": "1"}
        hello = {"protocolVersion": VERSION, "capabilities": {"elicitation": {}}, "clientInfo": client}
        self._ask("initialize", hello)
        self._tell({"method": "notifications/initialized"})

    def call(self) -> str:
        """Make a call; what came back, in a word."""
        topic = self._chance.choice(TOPICS)
        tool, args = "read_note", {"topic": topic}
        if self._chance.random() < WRITES:
            tool, args = "write_note", {"topic": topic, "text": "buy"}
        result = self._ask("tools/call", {"name": f"mcp__n{self._chance.randrange(3)}__{tool}", "arguments": args})
        if result.get("isError"):
            return str(result["content"][0]["text"]).partition(":")[0]
        return "ok"

    def end(self) -> None:
        """Close the session."""
        self._calls.request("DELETE", self._place.path, headers=self._headers())
        self._calls.getresponse().read()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._calls.request("POST", self._place.path, json.dumps(message), self._headers())
        answer = self._calls.getresponse()
        if session := answer.getheader("mcp-session-id"):
            self._session = {"mcp-session-id": session}
        result: dict[str, Any] = {}
        for said in _messages(answer):
            if said.get("method") == "elicitation/create":
                self._answer(said["id"])
            elif said.get("id") == self._number and "method" not in said:
                result = said["result"]
        return result

    def _answer(self, question: object) -> None:
        match self._chance.randrange(3):
            case 0:
                answer: dict[str, Any] = {"action": "accept", "content": {"decision": "approve"}}
            case 1:
                answer = {"action": "cancel"}
            case _:
                os._exit(9)
        self._tell({"id": question, "result": answer})

    def _tell(self, message: dict[str, Any]) -> None:
        beside = self._connection()
        beside.request("POST", self._place.path, json.dumps({"jsonrpc": "2.0", **message}), self._headers())
        beside.getresponse().read()
        beside.close()

    def _headers(self) -> dict[str, str]:
        accept = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        return {**accept, "authorization": f"Bearer {self._token}", "mcp-protocol-version": VERSION, **self._session}

    def _connection(self) -> HTTPConnection:
        return HTTPConnection(self._place.hostname or "", self._place.port, timeout=60)


def _messages(answer: HTTPResponse) -> Iterator[dict[str, Any]]:
    if answer.getheader("content-type", "").startswith("application/json"):
        yield json.loads(answer.read())
        return
    for line in answer:
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])


def main() -> None:
    url, token, seed, calls = sys.argv[1:]
    caller = Caller(url, token, random.Random(int(seed)))
    caller.begin()
    for _ in range(int(calls)):
        sys.stdout.write(f"{caller.call()}\n")
        sys.stdout.flush()
    caller.end()


if __name__ == "__main__":
    main()
