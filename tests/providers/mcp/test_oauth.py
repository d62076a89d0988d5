from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from remit.codes import Code
from remit.errors import ProviderError
from remit.providers.mcp.login_file import TokenFile
from remit.providers.mcp.oauth import LoginOrigins, Nobody, ServerLogin
from remit.settings.logins import EXPIRY, LoginFile
from remit.settings.mcp import McpServer
from remit.tools.remote import Authorized
from tests.providers.mcp.authority import TOKEN, Authority
from tests.providers.mcp.world import World

SERVER = McpServer(name="hosted", url="https://mcp.example/mcp", oauth={})
TOKENS = OAuthToken(access_token="hunter2", refresh_token="again")
CLIENT = OAuthClientInformationFull(client_id="us", client_secret="swordfish")


def kept_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_tokens_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    file = TokenFile(LoginFile(tmp_path / "auth", SERVER))
    assert await file.get_tokens() is None
    await file.set_tokens(TOKENS)
    await file.set_client_info(CLIENT)
    assert await file.get_tokens() == TOKENS
    assert (await TokenFile(LoginFile(tmp_path / "auth", SERVER)).get_client_info()) == CLIENT
    (written,) = kept_in(tmp_path / "auth")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert stat.S_IMODE(written.parent.stat().st_mode) == 0o700


async def test_tokens_of_one_url_are_not_those_of_another(tmp_path: Path) -> None:
    await TokenFile(LoginFile(tmp_path, SERVER)).set_tokens(TOKENS)
    moved = McpServer(name="hosted", url="https://elsewhere.example/mcp", oauth={})
    assert await TokenFile(LoginFile(tmp_path, moved)).get_tokens() is None


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"client": 5}'])
async def test_a_damaged_file_is_none(tmp_path: Path, damaged: bytes) -> None:
    file = TokenFile(LoginFile(tmp_path, SERVER))
    await file.set_client_info(CLIENT)
    (written,) = kept_in(tmp_path)
    written.write_bytes(damaged)
    assert await file.get_tokens() is None
    assert await file.get_client_info() is None


async def test_where_nobody_is_there_the_way_to_log_in_is_told() -> None:
    with pytest.raises(OAuthFlowError, match="remit mcp login hosted"):
        await Nobody("remit mcp login hosted").redirect("https://login.example")


async def test_a_server_without_oauth_is_not_asked_for_it(tmp_path: Path) -> None:
    plain = McpServer(name="plain", url="https://mcp.example/mcp")
    assert await ServerLogin(tmp_path).auth(plain) is None
    assert kept_in(tmp_path) == []


class Person:
    """Logs in at once."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    async def redirect(self, url: str) -> None:
        self.pages.append(url)
        async with httpx2.AsyncClient() as client:
            self.back = (await client.get(url)).headers["location"]

    async def callback(self) -> Authorized:
        given = {name: values[0] for name, values in parse_qs(urlsplit(self.back).query).items()}
        return Authorized(given["code"], given["state"], given.get("iss"))


@pytest.mark.slow
async def test_a_person_logs_in_once_and_calls_are_authorized_from_then_on(mcp: World, tmp_path: Path) -> None:
    async with Authority() as authority:
        server = McpServer(name="hosted", url=authority.url, level="L0", oauth={})
        person = Person()
        first = mcp.provider(server, login=ServerLogin(tmp_path, person))
        assert [meta.name for meta in await first.list_tools()] == ["mcp.hosted.echo"]
        assert len(person.pages) == 1
        await first.close()
        later = mcp.provider(server, login=ServerLogin(tmp_path))
        assert len(await later.list_tools()) == 1, "the tokens of the login are used again, and nobody is asked"


@pytest.mark.slow
async def test_without_a_login_the_failure_says_what_to_do(mcp: World, tmp_path: Path) -> None:
    async with Authority() as authority:
        server = McpServer(name="hosted", url=authority.url, oauth={})
        provider = mcp.provider(server, login=ServerLogin(tmp_path))
        with pytest.raises(ProviderError, match="remit mcp login hosted") as raised:
            await provider.list_tools()
        assert raised.value.cause is Code.SpawnFailed


def expired(folder: Path, server: McpServer, **tokens: str) -> LoginFile:
    """The file of a login whose access token has expired."""
    file = LoginFile(folder, server)
    content = {"access_token": TOKEN, "token_type": "Bearer", "refresh_token": "again", **tokens}
    file.keep(tokens=content, client={"client_id": "us", "redirect_uris": None}, **{EXPIRY: 1_000.0})
    return file


@pytest.mark.slow
async def test_another_process_renews_a_login_where_it_was_given(mcp: World, tmp_path: Path) -> None:
    """The authorization server lies elsewhere: what a process knew of it, the next one knows."""
    async with Authority() as authority, Authority() as other:
        authority.elsewhere = {"token": other.origin}
        authority.token = other.token = {**authority.token, "refresh_token": "again"}
        server = McpServer(name="hosted", url=authority.url, level="L0", oauth={"issuer": other.origin})
        first = mcp.provider(server, login=ServerLogin(tmp_path, Person()))
        await first.list_tools()
        await first.close()
        authority.valid.clear()
        authority.valid.add(f"{TOKEN}-1")  # which `other` gives next
        LoginFile(tmp_path, server).keep(**{EXPIRY: 1_000.0})
        later = mcp.provider(server, login=ServerLogin(tmp_path))
        assert len(await later.list_tools()) == 1
        assert other.renewals == ["again"]
        assert other.forms[-1]["resource"] == authority.url
        assert LoginFile(tmp_path, server).read()["tokens"]["refresh_token"] == "again-1"


@pytest.mark.slow
async def test_a_token_that_is_refused_before_its_time_is_renewed(mcp: World, tmp_path: Path) -> None:
    async with Authority() as authority:
        server = McpServer(name="hosted", url=authority.url, level="L0", oauth={})
        file = expired(tmp_path, server, access_token="withdrawn")
        file.keep(**{EXPIRY: None})
        assert len(await mcp.provider(server, login=ServerLogin(tmp_path)).list_tools()) == 1
        assert authority.renewals == ["again"]


@pytest.mark.slow
async def test_many_renew_a_login_once(mcp: World, tmp_path: Path) -> None:
    """Refresh tokens that rotate count once: a second use would end the login for all."""
    async with Authority() as authority:
        server = McpServer(name="hosted", url=authority.url, level="L0", oauth={})
        expired(tmp_path, server)
        providers = [mcp.provider(server, login=ServerLogin(tmp_path)) for _ in range(4)]
        listed = await asyncio.gather(*(provider.list_tools() for provider in providers))
        assert [len(tools) for tools in listed] == [1] * 4
        assert authority.renewals == ["again"]


@pytest.mark.slow
async def test_an_answer_of_another_issuer_is_no_login(mcp: World, tmp_path: Path) -> None:
    async with Authority() as authority:
        authority.issuer_of_answer = "https://evil.example"
        server = McpServer(name="hosted", url=authority.url, level="L0", oauth={})
        with pytest.raises(ProviderError, match="iss"):
            await mcp.provider(server, login=ServerLogin(tmp_path, Person())).list_tools()
        assert authority.forms == [], "no code was shown to anyone"


async def test_a_client_id_that_the_operator_changes_counts(tmp_path: Path) -> None:
    for client_id in ("one", "two"):
        server = McpServer(name="hosted", url=SERVER.url, oauth={"client_id": client_id})
        authorization = await ServerLogin(tmp_path).auth(server)
        assert authorization is not None
        await authorization.close()
        held = await TokenFile(LoginFile(tmp_path, server)).get_client_info()
        assert held is not None
        assert held.client_id == client_id


@pytest.mark.parametrize(
    ("content", "state"),
    [
        ({}, "none"),
        ({"tokens": {"access_token": "x"}}, "logged in"),
        ({"tokens": {"access_token": "x"}, EXPIRY: 99.0}, "expired"),
        ({"tokens": {"access_token": "x", "refresh_token": "y"}, EXPIRY: 99.0}, "logged in"),
    ],
)
async def test_a_file_says_how_its_login_is(tmp_path: Path, content: dict[str, Any], state: str) -> None:
    file = LoginFile(tmp_path, SERVER)
    if content:
        file.keep(**content)
    assert file.state(SERVER, 100.0) == state
    assert await file.remove() is bool(content)
    assert file.state(SERVER, 100.0) == "none"


NAMES = ("resource", "issuer", "registration", "token", "authorization")


@pytest.mark.slow
@pytest.mark.parametrize("what", NAMES)
async def test_a_server_chooses_no_other_origin_to_be_asked(
    mcp: World, tmp_path: Path, what: str
) -> None:  # s06/O01 to O03, O08
    async with Authority() as authority, Authority() as inside:
        authority.elsewhere = {what: inside.origin}
        server = McpServer(name="hosted", url=authority.url, oauth={"client_secret": "swordfish"})
        person = Person()
        with pytest.raises(ProviderError, match=r"which is not its own origin.*issuer"):
            await mcp.provider(server, login=ServerLogin(tmp_path, person)).list_tools()
        assert inside.asked == []
        assert all(urlsplit(page).netloc == urlsplit(authority.url).netloc for page in person.pages)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["registration", "token", "authorization"])
async def test_the_operator_names_an_authorization_server_elsewhere(mcp: World, tmp_path: Path, what: str) -> None:
    async with Authority() as authority, Authority() as other:
        authority.elsewhere = {what: other.origin}
        oauth = {"issuer": f"https://login.example {other.origin}/some/path"}
        server = McpServer(name="hosted", url=authority.url, level="L0", oauth=oauth)
        provider = mcp.provider(server, login=ServerLogin(tmp_path, Person()))
        assert [meta.name for meta in await provider.list_tools()] == ["mcp.hosted.echo"]
        assert other.asked == [{"registration": "/register", "token": "/token"}.get(what, "/authorize")]


@pytest.mark.parametrize(
    ("url", "lies_there"),
    [
        ("https://mcp.example/token", True),
        ("https://MCP.example.:443/token", True),
        ("http://mcp.example/token", False),
        ("https://mcp.example:8443/token", False),
        ("https://mcp.example.evil.test/token", False),
        ("https://mcp.example@evil.test/token", False),
        ("https://evil.test/?https://mcp.example", False),
        ("https://login.example/x", True),
        ("http://169.254.169.254/latest", False),
        ("http://localhost/x", False),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_what_counts_as_the_same_origin(url: str, lies_there: bool) -> None:
    origins = LoginOrigins(
        McpServer(name="h", url="https://mcp.example/mcp", oauth={"issuer": "https://login.example/a"})
    )
    if lies_there:
        origins.check(url, "x")
    else:
        with pytest.raises(OAuthFlowError):
            origins.check(url, "x")
