"""Enterprise-managed authorization: whose token is exchanged for one of a server, where, and when not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remit.codes import Code
from remit.errors import ProviderError, SettingsError
from remit.http.access import Assertion
from remit.providers.mcp.oauth import ServerLogin
from remit.providers.mcp.provider import McpProvider
from remit.settings.file import Base
from remit.settings.logins import LoginFile
from remit.settings.mcp import McpServer
from remit.settings.mcp_servers import read_server
from remit_testing.providers import call_context
from tests.http.issuer import EXCHANGE, ID_JAG, RSA, Issuer
from tests.providers.mcp.authority import TOKEN, Authority
from tests.providers.mcp.world import World


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
