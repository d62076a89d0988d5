"""What is of no version of MCP, and still between a client and the server wrapped for it: both ways, as it is."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from remit.journal.kinds import RequestRelayed
from remit.mcp_server.offer import OwnNames
from remit.mcp_server.relay import Relay
from remit.mcp_server.stdio import LineWire, serve_stdio
from tests.mcp_server.links import facing, sessions
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

SERVER: Final = Path(__file__).parent / "servers" / "vendor.py"
REFUSED: Final = {"code": 7, "message": "not today", "data": {"until": [1]}}


class Wire:
    """A client's end of the lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def say(self, message: Any) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")

    def ask(self, method: str, params: Any = None, request_id: Any = 1) -> None:
        self.say({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}})

    def call(self, name: str, **arguments: Any) -> None:
        self.ask("tools/call", {"name": name, "arguments": arguments, "_meta": {"progressToken": "p"}})

    async def heard(self) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return json.loads(await self._reader.readline())

    async def until(self, request_id: Any) -> list[Any]:
        """All that is said up to an answer."""
        messages = [await self.heard()]
        while messages[-1].get("id") != request_id or "method" in messages[-1]:
            messages.append(await self.heard())
        return messages


@asynccontextmanager
async def talking(
    remit_in: OpenRemit, version: str = "2025-11-25", refused: int = 0
) -> AsyncIterator[tuple[Wire, Any, dict[str, Any]]]:
    """A client on lines, the Remit before its server, and the greeting."""
    table = {"name": "vendor", "command": [sys.executable, "-I", "-S", str(SERVER), str(refused)], "level": "L0"}
    async with remit_in(flags={"mcp.servers": [table]}) as remit:
        ours, theirs = socket.socketpair()
        _, wire = await asyncio.get_running_loop().connect_accepted_socket(LineWire, ours)
        reader, writer = await asyncio.open_connection(sock=theirs)
        client, remote = Wire(reader, writer), remit.service.servers.remote("vendor")
        remote.serve_only(wire.client)
        hello = {
            "protocolVersion": version,
            "capabilities": {"acme": {"c": 1}},
            "clientInfo": {"name": "x", "version": "1"},
        }
        client.ask("initialize", hello, "hello")
        relay = Relay(remote, remit.service.sessions, await remit.service.servers.status("vendor"))
        async with facing(remit, names=OwnNames("vendor"), relay=relay) as face:
            serving = asyncio.create_task(serve_stdio(face, wire))
            (greeting,) = await client.until("hello")
            client.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
            try:
                yield client, remit, greeting["result"]
            finally:
                writer.close()
                await serving


async def test_a_request_of_the_servers_own_reaches_it_and_is_recorded(remit_in: OpenRemit) -> None:
    async with talking(remit_in) as (client, remit, greeting):
        assert greeting["capabilities"]["acme"] == {"v": 1}
        client.ask("acme/hello", {"name": "x", "n": [1.5]})
        (answer,) = await client.until(1)
        client.ask("acme/none", request_id="2")
        (refusal,) = await client.until("2")
        ((_, events),) = (await sessions(remit)).items()
    assert answer["result"] == {"params": {"name": "x", "n": [1.5]}, "vendor": [1.5]}
    assert refusal["error"] == REFUSED
    relayed = [(event.method, event.target, event.error) for event in events if isinstance(event, RequestRelayed)]
    assert relayed == [("acme/hello", "x", ""), ("acme/none", "", "vendor: not today")]


@pytest.mark.parametrize("method", ["tools/other", "Tools/call", " tools/call", "tasks/other", "subscriptions/x"])
async def test_a_method_of_the_protocols_own_names_goes_nowhere(remit_in: OpenRemit, method: str) -> None:
    async with talking(remit_in) as (client, _, _greeting):
        client.ask(method)
        (refusal,) = await client.until(1)
    assert refusal["error"]["code"] == -32601


async def test_notifications_of_their_own_pass_both_ways(remit_in: OpenRemit) -> None:
    async with talking(remit_in) as (client, _, _greeting):
        client.say({"jsonrpc": "2.0", "method": "notifications/acme/thing", "params": {"n": 1}})
        client.say({"jsonrpc": "2.0", "method": "$/acme"})
        client.call("told")
        *told, answer = await client.until(1)
    assert json.loads(answer["result"]["content"][0]["text"]) == [
        ["notifications/acme/thing", {"n": 1}],
        ["$/acme", None],
    ]
    names = ("notifications/vendor/thing", "$/x", "notifications/elicitation/complete")
    assert [(each["method"], each["params"]) for each in told] == [(name, {"elicitationId": "e"}) for name in names]


@pytest.mark.parametrize("answer", [{"result": {"r": [1]}}, {"error": {"code": 5, "message": "no", "data": {"d": 1}}}])
async def test_a_request_of_the_servers_own_is_answered_by_the_client(remit_in: OpenRemit, answer: Any) -> None:
    async with talking(remit_in) as (client, _, _greeting):
        client.call("ask", method="foo/bar")
        asked = await client.heard()
        assert (asked["method"], asked["params"]) == ("foo/bar", {"q": 1})
        client.say({"jsonrpc": "2.0", "id": asked["id"], **answer})
        (result,) = await client.until(1)
    assert json.loads(result["result"]["content"][0]["text"]) == next(iter(answer.values()))


@pytest.mark.parametrize("method", ["sampling/other", "elicitation/other", "tools/call"])
async def test_a_request_by_the_protocols_own_names_is_not_put_to_the_client(remit_in: OpenRemit, method: str) -> None:
    async with talking(remit_in) as (client, _, _greeting):
        client.call("ask", method=method)
        (result,) = await client.until(1)
    assert json.loads(result["result"]["content"][0]["text"])["code"] == -32601


async def test_progress_logs_and_others_come_in_the_servers_order_and_as_it_said_them(remit_in: OpenRemit) -> None:
    async with talking(remit_in) as (client, _, _greeting):
        client.call("order")
        *told, _answer = await client.until(1)
    expected: list[Any] = []
    for each in range(1, 41):
        progress = {"progressToken": "p", "progress": 2**53 + each, **({"_meta": {"acme/n": each}} if each % 2 else {})}
        expected += [progress, {"level": "info", "data": each}, {"n": each}]
    assert [each["params"] for each in told] == expected


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25"])
async def test_batches_are_of_one_version(remit_in: OpenRemit, version: str) -> None:
    async with talking(remit_in, version) as (client, _, _greeting):
        ping = {"jsonrpc": "2.0", "method": "ping"}
        hello = {"jsonrpc": "2.0", "id": "2", "method": "acme/hello"}
        client.say([{**ping, "id": 1}, hello, {"jsonrpc": "2.0", "method": "notifications/x"}, 5])
        answer = await client.heard()
        if version == "2025-11-25":
            assert (answer["id"], answer["error"]["code"]) == (None, -32600)
            return
        assert (answer["id"], answer["error"]["code"]) == (None, -32600), "5 is no message"
        assert {each["id"] for each in await client.heard()} == {1, "2"}
        client.say([{"jsonrpc": "2.0", "method": "notifications/x"}])
        client.ask("ping", request_id=3)
        assert await client.until(3) == [{"jsonrpc": "2.0", "id": 3, "result": {}}]


async def test_a_cursor_that_no_list_gave_is_refused(remit_in: OpenRemit) -> None:
    async with talking(remit_in) as (client, _, _greeting):
        client.ask("tools/list", {"cursor": "x"})
        (refusal,) = await client.until(1)
    assert refusal["error"]["code"] == -32602


async def test_a_list_that_the_server_refuses_is_refused_in_its_words_and_the_next_one_is_not(
    remit_in: OpenRemit,
) -> None:
    async with talking(remit_in, refused=2) as (client, _, greeting):
        assert greeting["serverInfo"] == {"name": "vendor", "version": "1"}
        client.ask("tools/list")
        (refusal,) = await client.until(1)
        client.ask("tools/list", request_id=2)
        *_, listed = await client.until(2)
    assert refusal["error"] == REFUSED
    assert len(listed["result"]["tools"]) == 4
