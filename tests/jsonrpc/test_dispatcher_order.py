"""What comes first is answered first where it has to be; and what comes after the end is nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp_types import CONNECTION_CLOSED

from remit.jsonrpc.protocol import MCPError
from tests.jsonrpc.pair import Context, Params, Side, echo, line, running, turns
from tests.patience import PATIENCE_S

# --- order


async def test_an_inline_request_is_answered_before_what_follows_is_looked_at() -> None:
    gate, seen = asyncio.Event(), []

    async def slow_first(_context: Context, method: str, _params: Params) -> dict[str, Any]:
        seen.append(method)
        if method == "initialize":
            await gate.wait()
        return {}

    server = Side(slow_first, inline=frozenset({"initialize"}), answers_invalid=True)
    async with running(server):
        server.dispatcher.received(line(id=1, method="initialize"))
        server.dispatcher.received(b"nonsense")
        server.dispatcher.received(line(id=2, method="initialize"))
        server.dispatcher.received(line(id=3, method="x"))
        server.dispatcher.received(line(method="told"))
        await turns()
        assert (seen, server.wire.sent, server.told.empty()) == (["initialize"], [], True)
        gate.set()
        await server.told.get()
        await turns()
        assert seen == ["initialize", "initialize", "x"]
        assert [message["id"] for message in server.wire.messages] == [1, None, 2, 3]


async def test_lines_that_come_before_the_run_are_kept_for_it() -> None:
    server = Side()
    server.dispatcher.received(line(id=1, method="early"))
    server.dispatcher.received(line(method="told"))
    assert server.wire.sent == []
    async with running(server):
        assert (await server.told.get())[0] == "told"
        await turns()
        assert server.wire.messages[0]["result"]["method"] == "early"


# --- the end


async def test_what_came_before_the_end_of_input_is_answered_first_and_then_the_conversation_ends() -> None:
    gate = asyncio.Event()

    async def held(_context: Context, method: str, _params: Params) -> dict[str, Any]:
        await gate.wait()
        return {"method": method}

    server = Side(held, inline=frozenset({"initialize"}))
    server.dispatcher.received(line(id=1, method="initialize"))
    server.dispatcher.received(line(id=2, method="x"))
    server.dispatcher.finish("no more", PATIENCE_S)
    assert not server.dispatcher.why_closed
    async with running(server):
        await turns()
        with pytest.raises(MCPError, match="no more"):  # no one is there to be asked
            await server.ask()
        gate.set()
        assert await server.dispatcher.closed() == "no more"
    assert [message["id"] for message in server.wire.messages] == [1, 2]


@pytest.mark.parametrize("patience_s", [0.0, PATIENCE_S])
async def test_at_the_end_of_input_nothing_is_waited_for_that_is_not_owed(patience_s: float) -> None:
    async def never(_context: Context, _method: str, _params: Params) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    server = Side(never, lasting=frozenset({"listen"}))
    async with running(server):
        server.dispatcher.received(line(id=1, method="x" if not patience_s else "listen"))
        await turns()
        server.dispatcher.finish("no more", patience_s)
        assert await server.dispatcher.closed() == "no more"
    assert server.wire.sent == []


async def test_the_end_wakes_everybody_with_the_reason() -> None:
    client = Side()
    async with running(client):
        asking = [asyncio.create_task(client.ask()) for _ in range(20)]
        await turns()
        client.dispatcher.close("its process was ended by SIGKILL")
        client.dispatcher.close("a second reason")
        assert await client.dispatcher.closed() == "its process was ended by SIGKILL"
        for each in await asyncio.gather(*asking, return_exceptions=True):
            assert isinstance(each, MCPError)
            assert (each.code, each.message) == (CONNECTION_CLOSED, "its process was ended by SIGKILL")
        with pytest.raises(MCPError, match="SIGKILL"):
            await client.ask()
        await client.dispatcher.notify("x", None)
        assert len(client.wire.sent) == 20


async def test_the_end_cancels_what_is_served_and_nothing_comes_after_it() -> None:
    ended: list[str] = []

    async def wait(_context: Context, method: str, _params: Params) -> dict[str, Any]:
        try:
            return await asyncio.Future()
        finally:
            ended.append(method)

    server = Side(wait, inline=frozenset({"first"}))
    async with running(server):
        server.dispatcher.received(line(id=1, method="a"))
        server.dispatcher.received(line(id=2, method="first"))
        server.dispatcher.received(line(id=3, method="held"))
        await turns()
        server.dispatcher.close("over")
        server.dispatcher.received(line(id=4, method="late"))
        await turns()
    assert sorted(ended) == ["a", "first"]
    assert server.wire.sent == []


async def test_a_conversation_that_ended_before_its_run_serves_nothing() -> None:
    server = Side()
    server.dispatcher.received(line(id=1, method="x"))
    server.dispatcher.close("gone already")
    async with running(server):
        await turns()
    assert server.wire.sent == []
    assert server.told.empty()


async def test_a_session_that_is_left_ends_the_conversation() -> None:
    client = Side(echo)
    task = asyncio.create_task(client.run())
    await turns()
    asking = asyncio.create_task(client.ask())
    await turns()
    task.cancel()
    await asyncio.wait([task])
    with pytest.raises(MCPError, match="the session has ended"):
        await asking
