"""Looking at MCP servers, and taking their tools as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from remit.app import Remit
from remit.codes import Code
from remit.errors import NotFoundError, ProviderError, StateError
from remit.service.mcp import McpServers, Restarts
from remit.tools.catalog import Catalog
from remit.tools.pins import Pins
from remit.tools.remote import RemoteStatus
from tests.jsonrpc.pair import turns
from tests.mcp_server.upstream import Upstream
from tests.opened import OpenRemit

READ: dict[str, Any] = {
    "name": "read",
    "description": "Reads.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


class Far(Upstream):
    """A server whose definitions the test sets."""

    def __init__(self, *definitions: dict[str, Any]) -> None:
        super().__init__()
        self.worded = {each["name"]: each for each in definitions}
        self.down = False
        self.restarts: list[str] = []

    async def definitions(self) -> Mapping[str, dict[str, Any]]:
        if self.down:
            raise ProviderError("nobody answers", cause=Code.ConnectionError)
        return self.worded

    async def status(self) -> RemoteStatus:
        await self.definitions()
        return RemoteStatus(
            name="far", version="1", protocol="2025-11-25", era="legacy", instructions="", tools=1, capabilities={}
        )

    async def relay(self, method: str, params: Mapping[str, Any], peer: Any, principal: str) -> dict[str, Any]:
        raise ProviderError(f"{method} is not asked here", cause=Code.ToolNotFound)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        raise NotImplementedError

    async def restart(self, by: str) -> None:
        self.restarts.append(by)

    async def become(self, other: Any) -> None:
        raise NotImplementedError

    async def retire(self) -> None:
        raise NotImplementedError

    def serve_only(self, peer: Any) -> None:
        """It serves no one in particular."""

    def subscribe(self, listener: Any) -> None:
        """It tells nothing."""


@pytest.fixture
def far() -> Far:
    return Far(READ)


def servers_of(remit: Remit, far: Far) -> McpServers:
    """The servers of a process that uses this one."""
    journal, catalog = remit.runtime.journal, Catalog([far])
    return McpServers(catalog, Pins(journal, trust=False, principal="alice"), Restarts(journal, catalog))


async def test_what_changed_is_bound_by_its_digest(remit_in: OpenRemit, far: Far) -> None:
    async with remit_in() as remit:
        servers = servers_of(remit, far)
        first = await servers.pin("far")
        assert (first.by, first.how, first.seq) == ("alice", "pin", 1)
        assert not (await servers.diff("far")).changes
        far.worded = {"read": {**READ, "description": "Reads all."}}
        seen = await servers.diff("far")
        assert seen.changes.changed == ("read",)
        far.worded = {"read": {**READ, "description": "Reads more."}}
        with pytest.raises(StateError, match="have changed since they were shown") as raised:
            await servers.approve("far", seen.digest)
        assert raised.value.code is Code.CONFIRMATION_MISMATCH
        again = await servers.diff("far")
        approved = await servers.approve("far", again.digest, by="bob")
        assert (approved.by, approved.how, approved.seq) == ("bob", "approve", 2)
        assert await servers.pin_of("far") is not None
        with pytest.raises(StateError):
            await servers.approve("far", again.digest)  # it was of the pin before


async def test_an_approval_takes_the_place_of_no_pin_but_the_one_that_was_shown(
    remit_in: OpenRemit, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in() as remit:
        servers = servers_of(remit, far)
        await servers.pin("far")
        far.worded = {"read": {**READ, "description": "Reads all."}}
        seen, definitions = await servers.diff("far"), far.definitions

        async def pinned_meanwhile() -> Mapping[str, dict[str, Any]]:
            monkeypatch.setattr(far, "definitions", definitions)
            await servers.pin("far", by="bob")
            return await definitions()

        monkeypatch.setattr(far, "definitions", pinned_meanwhile)
        with pytest.raises(StateError, match="at the same moment"):
            await servers.approve("far", seen.digest)
        pin = await servers.pin_of("far")
        assert pin is not None
        assert (pin.by, pin.seq) == ("bob", 2)


@pytest.mark.parametrize(
    ("change", "drift"),
    [
        ({"description": "Other words."}, "annotation_only"),
        ({"title": "Read"}, "annotation_only"),
        ({"inputSchema": {**READ["inputSchema"], "required": ["path"]}}, "breaking"),
        ({"inputSchema": {"type": "object", "properties": {"path": {}, "more": {}}}}, "compatible"),
    ],
)
async def test_a_change_says_what_it_means_to_callers(
    remit_in: OpenRemit, far: Far, change: dict[str, Any], drift: str
) -> None:
    async with remit_in() as remit:
        servers = servers_of(remit, far)
        await servers.pin("far")
        far.worded = {"read": {**READ, **change}}
        (tool,) = (await servers.diff("far")).tools
    assert (tool.name, tool.how, tool.drift) == ("read", "changed", drift)
    assert any(line[0] in "+-" for line in tool.lines)


async def test_what_cannot_be_looked_at_says_why(remit_in: OpenRemit, far: Far) -> None:
    async with remit_in() as remit:
        servers = servers_of(remit, far)
        with pytest.raises(NotFoundError, match="never pinned"):
            await servers.diff("far")
        with pytest.raises(NotFoundError, match="no MCP server 'near'"):
            await servers.status("near")
        far.down = True
        for asked in (servers.status, servers.definitions, servers.pin):
            with pytest.raises(StateError, match="nobody answers") as raised:
                await asked("far")
            assert raised.value.code is Code.TOOL_UNAVAILABLE


async def test_a_restart_reaches_every_process_once(remit_in: OpenRemit) -> None:
    here, there, late = Far(READ), Far(READ), Far(READ)
    async with remit_in() as remit:
        asks, hears = servers_of(remit, here), servers_of(remit, there)
        for servers in (asks, hears):
            await servers.restarts.look()
        assert (await asks.restart("far", by="ann")).name == "far"
        await hears.restarts.ask("far", "bob", here=False)
        await hears.restarts.ask("other", "bob", here=False)
        for servers in (asks, hears, asks, hears, servers_of(remit, late)):
            await servers.restarts.look()
            await turns()
    assert here.restarts == ["ann", "bob"]
    assert there.restarts == ["ann", "bob"]
    assert late.restarts == [], "it began with a new one"
