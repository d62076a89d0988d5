"""Who wants to know hears that the catalog changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.client import Client
from mcp.shared.subscriptions import ToolsListChanged

from remit.mcp_server.server import ToolServer
from remit.tools.pins import Pins
from tests.mcp_server.links import Link, facing
from tests.mcp_server.test_listing import DEFINITION, names
from tests.mcp_server.upstream import Upstream, offered
from tests.opened import OpenRemit

SECOND = {**DEFINITION, "name": "second"}


class Heard:
    """The notices of changed tools that a client was sent."""

    def __init__(self) -> None:
        self._came: asyncio.Queue[None] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            self._came.put_nowait(None)

    async def once(self) -> None:
        await self._came.get()

    @property
    def none(self) -> bool:
        return self._came.empty()

    def put(self) -> None:
        self._came.put_nowait(None)


@asynccontextmanager
async def hearing(face: ToolServer, link: Link) -> AsyncIterator[tuple[Client, Heard]]:
    """A client that wants to hear of changed tools, in the way its era has for it."""
    heard = Heard()
    if not link.modern:
        async with link.connect(face, message_handler=heard) as client:
            if link.transport == "http":
                await client.list_tools()  # the stream for notices is open once another request was served
            yield client, heard
        return
    async with link.connect(face) as client, client.listen(tools_list_changed=True) as subscription:

        async def follow() -> None:
            async for event in subscription:
                if isinstance(event, ToolsListChanged):
                    heard.put()

        following = asyncio.create_task(follow())
        try:
            yield client, heard
        finally:
            following.cancel()
            await asyncio.wait([following])


async def test_a_client_hears_of_changed_tools_and_then_sees_them(remit_in: OpenRemit, link: Link) -> None:
    far = Upstream(offered(DEFINITION))
    async with remit_in(providers=[far]) as remit, facing(remit) as face, hearing(face, link) as (client, heard):
        assert "mcp__far__second" not in await names(client)
        far.change(offered(DEFINITION), offered(SECOND))
        await heard.once()
        assert "mcp__far__second" in await names(client)


async def test_a_call_that_takes_its_own_tool_away_is_answered_in_the_servers_words(
    remit_in: OpenRemit, link: Link
) -> None:
    async def switches(_args: dict[str, Any], _ctx: Any) -> dict[str, Any]:
        far.change(offered(SECOND))
        assert "mcp.far.search" not in {tool.name for tool in await remit.service.tools.views()}
        return {"content": [{"type": "text", "text": text} for text in ("it", "switched")]}

    far = Upstream(offered(DEFINITION), answer=switches)
    async with remit_in(providers=[far]) as remit, facing(remit) as face, link.connect(face) as client:
        answer = await client.call_tool("mcp__far__search", {"q": "x"})
    assert [getattr(block, "text", "") for block in answer.content] == ["it", "switched"]


async def test_a_server_that_was_too_slow_for_the_list_is_heard_of(
    remit_in: OpenRemit, link: Link, monkeypatch: Any
) -> None:
    monkeypatch.setattr("remit.mcp_server.offer.PATIENCE_S", 0.01)
    awake = asyncio.Event()

    class Sleeper(Upstream):
        async def list_tools(self) -> Any:
            await awake.wait()
            return await super().list_tools()

    async with (
        remit_in(providers=[Sleeper(offered(DEFINITION))]) as remit,
        facing(remit) as face,
        hearing(face, link) as (client, heard),
    ):
        assert "mcp__far__search" not in await names(client)
        awake.set()
        await heard.once()
        assert "mcp__far__search" in await names(client)


async def test_one_client_that_left_keeps_no_other_from_hearing(remit_in: OpenRemit, link: Link) -> None:
    far = Upstream(offered(DEFINITION))
    async with remit_in(providers=[far]) as remit, facing(remit) as face:
        async with hearing(face, link) as (gone, _):
            await names(gone)
        async with hearing(face, link) as (client, heard):
            await names(client)
            far.change(offered(DEFINITION), offered(SECOND))
            await heard.once()


async def test_a_client_hears_when_a_pin_is_approved_elsewhere(remit_in: OpenRemit, link: Link) -> None:
    class Pinned(Upstream):
        """Withholds what differs from its pin, as the provider of a real server does."""

        async def list_tools(self) -> Any:
            pins = Pins(remit.runtime.journal, trust=True, principal="alice")
            withheld = await pins.withheld("far", {"search": DEFINITION, **({"second": SECOND} if self.more else {})})
            return [offered(each, withheld=withheld.get(each["name"], "")) for each in (DEFINITION, SECOND)]

        more = False

    far = Pinned()
    async with remit_in(providers=[far]) as remit, facing(remit) as face, hearing(face, link) as (client, heard):
        await names(client)
        far.more = True
        far.change()
        await heard.once()
        assert "mcp__far__second" not in await names(client)
        pins = Pins(remit.runtime.journal, trust=True, principal="bob")
        await pins.record("far", {"search": DEFINITION, "second": SECOND}, how="approve")
        far.change()
        await heard.once()
        assert "mcp__far__second" in await names(client)


async def test_no_notice_is_sent_that_nothing_stands_behind(remit_in: OpenRemit, link: Link) -> None:
    """Official clients of the 1.x kind fail if a notice comes while they close."""
    far = Upstream(offered(DEFINITION))
    async with remit_in(providers=[far]) as remit, facing(remit) as face, hearing(face, link) as (client, heard):
        await names(client)
        for _ in range(3):
            far.change(offered(DEFINITION))  # listed again, and the same
            await remit.runtime.services.catalog.tools()
        await settled(face)
        far.change(offered(DEFINITION), offered(SECOND))
        await heard.once()
        await settled(face)
        assert heard.none


async def test_a_client_that_was_given_no_list_yet_is_sent_no_notice(remit_in: OpenRemit, link: Link) -> None:
    far = Upstream(offered(DEFINITION))
    async with remit_in(providers=[far]) as remit, facing(remit) as face, link.connect(face):
        far.change(offered(SECOND))
        assert len(face.changes._tasks) == 0, "nothing is compared, no server is started for it"


async def settled(face: ToolServer) -> None:
    """Wait until all that changed so far is told."""
    while face.changes._tasks:
        await face.changes._tasks.ended()
