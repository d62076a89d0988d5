"""A server at which each person logs in: whose token a call goes with, and that it is never another's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.providers.mcp import lines
from remit.providers.mcp.oauth import ServerLogin
from remit.providers.mcp.provider import McpProvider
from remit.settings.logins import EXPIRY, LoginFile
from remit.settings.mcp import McpServer
from remit_testing.providers import call_context
from tests.providers.mcp.authority import TOKEN, Authority
from tests.providers.mcp.world import World

ECHO = "mcp.hosted.echo"


class Team(NamedTuple):
    """A server that several people use through one provider."""

    authority: Authority
    provider: McpProvider
    server: McpServer
    folder: Path

    def log_in(self, who: str, token: str = "", **more: Any) -> None:
        """Keep a login of someone."""
        token = token or f"token-of-{who}"
        self.authority.valid.add(token)
        tokens = {"access_token": token, "token_type": "Bearer", **more}
        file = LoginFile(self.folder, self.server, who)
        file.keep(tokens=tokens, client={"client_id": "us", "redirect_uris": None})

    async def call(self, who: str, text: str = "") -> Any:
        """The authorization with which a call of someone's arrived."""
        value = (await self.provider.invoke(ECHO, {"text": text}, call_context(principal=who))).value
        return str(value).strip()


@pytest.fixture
async def team(mcp: World, tmp_path: Path) -> AsyncIterator[Team]:
    async with Authority() as authority:
        server = McpServer(name="hosted", url=authority.url, level="L0", oauth={}, login="user")
        provider = mcp.provider(server, login=ServerLogin(tmp_path, principal="operator"))
        found = Team(authority, provider, server, tmp_path)
        found.log_in("operator", TOKEN)
        await provider.list_tools()
        yield found
        await provider.close()


@pytest.mark.slow
async def test_each_call_goes_with_the_token_of_who_makes_it(team: Team) -> None:
    people = ["ann", "ben", "operator"]
    team.log_in("ann")
    team.log_in("ben")
    arrived = await asyncio.gather(*(team.call(who, str(number)) for number in range(8) for who in people))
    assert arrived == ["Bearer token-of-ann", "Bearer token-of-ben", f"Bearer {TOKEN}"] * 8


@pytest.mark.slow
async def test_who_is_not_logged_in_is_told_how_and_uses_no_one_s_login(team: Team) -> None:
    team.log_in("ann")
    await team.call("ann")
    before = len(team.authority.bearers)
    for who in ("carl", "", "ann ", "operator\n", "../ann"):
        with pytest.raises(ProviderError, match=r"is not logged in: remit --as .* mcp login hosted") as raised:
            await team.call(who)
        assert raised.value.cause is Code.SpawnFailed, "it certainly did not happen"
        with pytest.raises(ProviderError, match="is not logged in"):
            await team.provider.relay("tools/list", {}, None, who)
    assert len(team.authority.bearers) == before, "the server was not asked at all"


@pytest.mark.slow
async def test_once_they_log_in_their_next_call_runs(team: Team) -> None:
    for _ in range(3):
        with pytest.raises(ProviderError, match="carl is not logged in"):
            await team.call("carl")
    team.log_in("carl")
    assert await team.call("carl") == "Bearer token-of-carl"


@pytest.mark.slow
async def test_what_is_not_a_call_goes_by_the_same_login(team: Team) -> None:
    team.log_in("ann")
    await team.provider.relay("tools/list", {}, None, "ann")
    assert team.authority.bearers[-1] == "token-of-ann"


@pytest.mark.slow
async def test_a_login_that_is_renewed_stays_its_owner_s(team: Team) -> None:
    team.log_in("ben")
    team.log_in("ann", refresh_token="again")
    file = LoginFile(team.folder, team.server, "ann")
    file.keep(**{EXPIRY: 1_000.0})
    assert await team.call("ann") == f"Bearer {TOKEN}-1"
    assert file.read()["tokens"]["refresh_token"] == "again-1"
    assert LoginFile(team.folder, team.server, "ben").read()["tokens"]["access_token"] == "token-of-ben"
    assert LoginFile(team.folder, team.server, "operator").read()["tokens"]["access_token"] == TOKEN


@pytest.mark.slow
async def test_a_tool_of_other_words_for_one_person_does_not_run_for_them(team: Team) -> None:
    """Approvals and pins are about the tool that is listed."""
    team.log_in("ann")
    team.log_in("ben")
    team.authority.other_tool.add("token-of-ann")
    with pytest.raises(ProviderError, match="another tool for them") as raised:
        await team.call("ann")
    assert raised.value.cause is Code.ToolNotFound
    assert await team.call("ben") == "Bearer token-of-ben"


@pytest.mark.slow
async def test_connections_of_people_are_bounded(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MOST", 2)
    people = ["ann", "ben", "carl", "dora"]
    for who in people:
        team.log_in(who)
        await team.call(who)
    assert list(team.provider._people._lines) == ["carl", "dora"]
    assert await asyncio.gather(*map(team.call, people)) == [f"Bearer token-of-{who}" for who in people]
    assert len(team.provider._people._lines) == 2


def test_a_login_of_a_person_lies_apart(tmp_path: Path) -> None:
    server = McpServer(name="hosted", url="https://mcp.example/mcp", oauth={}, login="user")
    shared = McpServer(name="hosted", url="https://mcp.example/mcp", oauth={})
    paths = {LoginFile(tmp_path, server, who).path for who in ("ann", "ben", "", "../ann")}
    assert len(paths) == 4
    assert all(path.parent == tmp_path for path in paths)
    assert LoginFile(tmp_path, shared, "ann").path == LoginFile(tmp_path, shared, "ben").path
    assert LoginFile(tmp_path, shared).path not in paths
