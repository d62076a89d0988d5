from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from remit.codes import Code
from remit.errors import ProviderError, SettingsError
from remit.http.access import Assertion
from remit.providers.mcp.oauth import LoginOrigins, Nobody, ServerLogin, TokenFile
from remit.providers.mcp.provider import McpProvider
from remit.settings.file import Base
from remit.settings.logins import EXPIRY, LoginFile
from remit.settings.mcp import McpServer
from remit.settings.mcp_servers import read_server
from remit.tools.remote import Authorized
from remit_testing.providers import call_context
from tests.http.issuer import EXCHANGE, ID_JAG, RSA, Issuer
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


class Caller:
    """The peer of a call, as far as its proof goes."""

    deferred = False

    def __init__(self, assertion: Assertion | None) -> None:
        self.meta: dict[str, Any] = {}
        self.attached: dict[str, Any] = {}
        self.assertion = assertion

    def given(self, invocation_id: str, result: Any) -> None:
        """Nothing is passed on."""

    def can(self, method: str) -> bool:
        return False

    def defer(self, message: str) -> bool:
        return False

    async def ask(self, requests: Any) -> dict[str, dict[str, Any]]:
        raise NotImplementedError

    def tell(self, method: str, params: Any) -> None:
        """Nothing is shown."""


class Firm(NamedTuple):
    """An identity provider, a server that trusts it, and a provider of ours between them."""

    identity: Issuer
    authority: Authority
    provider: McpProvider

    def proof(self, who: str) -> Assertion:
        return Assertion(self.identity.url, who, self.identity.token(sub=who))

    async def call(self, principal: str, proof: Assertion | None) -> str:
        """The authorization with which a call arrived."""
        context = call_context(principal=principal, peer=Caller(proof))
        return str((await self.provider.invoke("mcp.hosted.echo", {"text": ""}, context)).value).strip()


@pytest.fixture
async def firm(mcp: World, tmp_path: Path) -> AsyncIterator[Firm]:
    async with Issuer() as identity, Authority() as authority:
        authority.provider_key = RSA.public_key()
        oauth = {
            "identity_provider": identity.url,
            "identity_client_id": "remit",
            "identity_client_secret": "hunter2",
            "issuer": authority.origin,
            "client_id": "us",
            "client_secret": "swordfish",
        }
        server = McpServer(name="hosted", url=authority.url, level="L0", oauth=oauth, login="user")
        operator = LoginFile(tmp_path, server, "operator")
        operator.keep(tokens={"access_token": TOKEN, "token_type": "Bearer"})
        provider = mcp.provider(server, login=ServerLogin(tmp_path, principal="operator"))
        await provider.list_tools()
        yield Firm(identity, authority, provider)
        await provider.close()


@pytest.mark.slow
async def test_a_caller_s_token_becomes_one_of_the_server(firm: Firm) -> None:
    ann = firm.proof("ann")
    assert await firm.call("okta:ann", ann) == "Bearer for-ann"
    assert await firm.call("okta:ann", firm.proof("ann")) == "Bearer for-ann"
    (asked,) = firm.identity.forms
    assert (asked["grant_type"], asked["requested_token_type"]) == (EXCHANGE, ID_JAG)
    assert (asked["audience"], asked["resource"]) == (firm.authority.origin, firm.authority.url)
    assert asked["subject_token"] == ann.token
    assert asked["authorization"].startswith("Basic ")
    assert ann.token not in str(firm.authority.forms) + str(firm.authority.bearers), "the server never sees it"


@pytest.mark.slow
async def test_people_who_share_a_principal_share_no_token(firm: Firm) -> None:
    people = ["ann", "ben"] * 5
    arrived = await asyncio.gather(*(firm.call("team", firm.proof(who)) for who in people))
    assert arrived == [f"Bearer for-{who}" for who in people]
    assert len(firm.identity.forms) == 2


@pytest.mark.slow
async def test_a_token_that_the_server_takes_back_is_exchanged_for_again(firm: Firm) -> None:
    await firm.call("okta:ann", firm.proof("ann"))
    firm.authority.valid.discard("for-ann")
    later = firm.proof("ann")
    assert await firm.call("okta:ann", later) == "Bearer for-ann"
    assert [form["subject_token"] for form in firm.identity.forms][-1] == later.token


@pytest.mark.slow
async def test_no_one_is_let_in_without_a_token_of_the_identity_provider(firm: Firm) -> None:
    foreign = Assertion("https://other.example", "ann", firm.identity.token(sub="ann"))
    await firm.call("okta:ann", firm.proof("ann"))
    before = len(firm.authority.bearers)
    for proof in (None, foreign):
        with pytest.raises(ProviderError, match="has to call with a token of") as raised:
            await firm.call("okta:ann", proof)
        assert (raised.value.cause, raised.value.code) == (Code.AuthError, Code.TOOL_UNAVAILABLE)
    assert (len(firm.authority.bearers), len(firm.identity.forms)) == (before, 1), "nothing was sent to anyone"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"denies": True}, "gave no assertion for the server: HTTP 400"),
        ({"grants": {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}}, "gave no assertion"),
        ({"grants": {"access_token": ""}}, "gave no assertion"),
        ({"grants": {"access_token": "x" * 70_000}}, "gave no assertion"),
        ({"metadata": {"token_endpoint": "http://127.0.0.1:1/token"}}, "not at its own origin"),
        ({"metadata": {"token_endpoint": "https://evil.example/token"}}, "not at its own origin"),
        ({"metadata": {"issuer": "https://evil.example"}}, "no metadata of its own"),
    ],
)
async def test_an_identity_provider_that_says_no_or_points_elsewhere_ends_the_call(
    firm: Firm, change: dict[str, Any], why: str
) -> None:
    for name, value in change.items():
        setattr(firm.identity, name, value)
    proof = firm.proof("ann")
    with pytest.raises(ProviderError, match=why) as raised:
        await firm.call("okta:ann", proof)
    assert proof.token not in str(raised.value)


def test_a_proof_is_never_printed() -> None:
    assert "hunter2" not in repr(Assertion("https://sso.example", "ann", "hunter2"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"login": "shared"}, 'login is not "user"'),
        ({"identity_client_secret": ""}, "oauth lacks identity_client_secret"),
        ({"client_secret": " "}, "oauth lacks client_secret"),
        ({"issuer": "https://a.example https://b.example"}, "one issuer"),
        ({"identity_provider": "http://sso.example"}, "one issuer"),
    ],
)
def test_a_table_that_exchanges_tokens_is_whole(tmp_path: Path, change: dict[str, str], why: str) -> None:
    names = ("identity_client_id", "identity_client_secret", "client_id", "client_secret")
    urls = {"identity_provider": "https://sso.example", "issuer": "https://auth.example"}
    whole: dict[str, str] = {**dict.fromkeys(names, "x"), **urls}
    table = {"name": "a", "url": "https://mcp.example/mcp", "login": "user", "oauth": whole}
    read_server(table, "here", Base(tmp_path, None), "")
    changed = {**table, "oauth": {**whole, **{key: value for key, value in change.items() if key != "login"}}}
    changed |= {key: value for key, value in change.items() if key == "login"}
    with pytest.raises(SettingsError, match=why):
        read_server(changed, "here", Base(tmp_path, None), "")
