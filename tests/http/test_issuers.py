"""Bearers of issuers' tokens: whom they let in, as whom, and what is tried to be let in without one."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from remit.clock import SECOND
from remit.codes import Code
from remit.http import issuer_keys
from remit.http.access import Access, TokenIdentity
from remit.http.grants import Grant, rivals
from remit.http.guard import LOOPBACK, Guard, Token, digest_of
from remit.http.issuer_keys import COOL_S, FRESH_S, MAX_BYTES, STALE_S, metadata_urls
from remit.http.issuers import LONGEST, SKEW_S, Issuers
from remit.http.problem import HttpProblem
from remit.http.urls import is_issuer
from remit_testing.clock import ManualClock
from tests.http.issuer import AUDIENCE, EC, NOW_S, RSA, STRANGER, Issuer, public

CALL = Access("okta:{email}", frozenset({"read", "call"}))


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with Issuer() as serving:
        yield serving


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S * SECOND)


def grant(issuer: Issuer, access: Access = CALL, **claims: str) -> Grant:
    wanted = {name: (value,) for name, value in claims.items()}
    return Grant(issuer=issuer.url, audience=(AUDIENCE,), claims=wanted, access=access)


def letting_in(issuer: Issuer, clock: ManualClock, *grants: Grant, **more: Any) -> Issuers:
    return Issuers(grants or (grant(issuer),), clock, **more)


async def why_refused(issuers: Issuers, token: str) -> str:
    with pytest.raises(HttpProblem) as raised:
        await issuers.access(token)
    assert raised.value.code is Code.UNAUTHENTICATED
    assert not any(len(part) > 8 and part in str(raised.value) for part in token.split(".")), "it is never quoted"
    return raised.value.detail


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (RSA, "PS512"), (EC, "ES256")])
async def test_a_token_lets_its_bearer_in_as_its_claims_say(
    issuer: Issuer, clock: ManualClock, key: Any, algorithm: str
) -> None:
    token = issuer.token(key, algorithm)
    access = await letting_in(issuer, clock).access(token)
    assert access.assertion is not None
    assert (access.assertion.issuer, access.assertion.subject, access.assertion.token) == (issuer.url, "u1", token)
    assert token not in repr(access)
    assert access.principal == "okta:ann@acme.example"
    assert access.scopes == {"read", "call"}
    assert access.identity == TokenIdentity(issuer.url, "u1", "ec" if algorithm == "ES256" else "rsa")


async def test_of_an_issuer_s_grants_the_first_that_fits_counts(issuer: Issuer, clock: ManualClock) -> None:
    admins = grant(issuer, Access("admin:{email}", frozenset({"admin"})), groups="ops", email_verified="true")
    writers = grant(issuer, Access("writer:{email}", frozenset({"call"})), scope="remit:write")
    issuers = letting_in(issuer, clock, admins, writers)
    admitted: dict[str, dict[str, Any]] = {
        "admin:ann@acme.example": {"groups": ["dev", "ops"], "email_verified": True},
        "writer:ann@acme.example": {"groups": ["ops"], "scope": "openid remit:write"},
    }
    for principal, claims in admitted.items():
        assert (await issuers.access(issuer.token(**claims))).principal == principal
    others: list[dict[str, Any]] = [{}, {"groups": "dev ops"}, {"scope": "remit:writer"}, {"groups": {"ops": 1}}]
    for claims in others:
        assert "lacks" in await why_refused(issuers, issuer.token(**claims))


def forged(issuer: Issuer) -> dict[str, str]:
    """Tokens that count for nothing, by what is tried."""
    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    claims = jwt.decode(issuer.token(), options={"verify_signature": False})

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    def hmac_by(secret: bytes) -> str:
        signing = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{part(claims)}"
        signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(signing.encode(), secret)
        return f"{signing}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"

    head, body, signature = issuer.token().split(".")
    own = public(STRANGER, "rsa")
    return {
        "alg none": f"{part({'alg': 'none', 'kid': 'rsa'})}.{body}.",
        "alg None": f"{part({'alg': 'None', 'kid': 'rsa'})}.{body}.{signature}",
        "HS256 by the public key": hmac_by(pem),
        "HS256 by its modulus": hmac_by(str(public(RSA, "rsa")["n"]).encode()),
        "another key": issuer.token(STRANGER),
        "a key that it brings": issuer.token(STRANGER, header={"jwk": own}),
        "where its key is": issuer.token(STRANGER, header={"jku": "http://127.0.0.1:1/", "x5u": "http://127.0.0.1:1/"}),
        "the key of another algorithm": issuer.token(header={"kid": "ec"}),
        "an unknown key": issuer.token(header={"kid": "other"}),
        "no key": issuer.token(header={"kid": None}),
        "something critical": issuer.token(header={"crit": ["exp"]}),
        "other claims": f"{head}.{part({**claims, 'email': 'boss@acme.example'})}.{signature}",
        "no signature": f"{head}.{body}.",
        "another issuer": issuer.token(iss="https://evil.example"),
        "an issuer like it": issuer.token(iss=f"{issuer.url}/"),
        "no issuer": issuer.token(iss=None),
        "another audience": issuer.token(aud="https://other.example/mcp"),
        "an audience like it": issuer.token(aud=f"{AUDIENCE}/more"),
        "no audience": issuer.token(aud=None),
        "no subject": issuer.token(sub=None),
        "an empty subject": issuer.token(sub=""),
        "no end": issuer.token(exp=None),
        "an end that is long past": issuer.token(exp=NOW_S - SKEW_S),
        "a beginning to come": issuer.token(nbf=NOW_S + SKEW_S + 1),
        "a birth to come": issuer.token(iat=NOW_S + SKEW_S + 1),
        "a name of no one": issuer.token(email=None),
        "a name with a line break": issuer.token(email="ann\nboss"),
        "a name with blanks": issuer.token(email=" boss"),
        "a name too long": issuer.token(email="a" * 201),
        "a token to log out": issuer.token(header={"typ": "logout+jwt"}),
        "an assertion for another server": issuer.token(header={"typ": "oauth-id-jag+jwt"}),
        "nonsense": "a.b.c",
        "an object for a header": f"{part([])}.{body}.{signature}",
        "too much": issuer.token(pad="x" * LONGEST),
    }


async def test_what_is_no_token_of_the_issuer_for_us_lets_no_one_in(issuer: Issuer, clock: ManualClock) -> None:
    issuers = letting_in(issuer, clock)
    await issuers.access(issuer.token())
    for what, token in forged(issuer).items():
        assert await why_refused(issuers, token), what
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"], "and none of it makes us ask again"


async def test_clocks_may_differ_a_little(issuer: Issuer, clock: ManualClock) -> None:
    issuers = letting_in(issuer, clock)
    await issuers.access(issuer.token(exp=NOW_S - SKEW_S + 1, nbf=NOW_S + SKEW_S, iat=NOW_S + SKEW_S))


async def test_no_issuer_speaks_for_a_client_of_ours(issuer: Issuer, clock: ManualClock) -> None:
    open_name = grant(issuer, Access("{email}", frozenset({"call"})))
    issuers = letting_in(issuer, clock, open_name, taken=frozenset({"boss", "team-agent"}))
    for name in ("boss", "team-agent"):
        assert "speak for" in await why_refused(issuers, issuer.token(email=name))
    assert (await issuers.access(issuer.token(email="ann"))).principal == "ann"


async def test_a_token_of_one_issuer_does_not_count_as_another_s(issuer: Issuer, clock: ManualClock) -> None:
    async with Issuer() as other:
        other.keys = [public(STRANGER, "rsa")]
        issuers = letting_in(issuer, clock, grant(issuer), grant(other, Access("other:{email}", frozenset({"admin"}))))
        assert (await issuers.access(other.token(STRANGER))).principal == "other:ann@acme.example"
        assert "signed by" in await why_refused(issuers, other.token(RSA))
        assert "signed by" in await why_refused(issuers, issuer.token(STRANGER))


def test_issuers_that_could_name_the_same_principal_are_rivals() -> None:
    def grants(*both: str) -> list[Grant]:
        return [
            Grant(issuer=f"https://{number}.example", audience=("a",), claims={}, access=Access(one, frozenset()))
            for number, one in enumerate(both)
        ]

    assert rivals(grants("okta:{sub}", "entra:{sub}")) is None
    assert rivals(grants("robot", "robot")) is None
    for both in (("{sub}", "{sub}"), ("{sub}", "okta:{sub}"), ("okta:{sub}", "okta:admin"), ("boss", "{email}")):
        assert rivals(grants(*both)) is not None, both


async def test_tokens_that_name_unknown_keys_do_not_make_us_ask_again_and_again(
    issuer: Issuer, clock: ManualClock
) -> None:
    issuers = letting_in(issuer, clock)
    for number in range(50):
        await why_refused(issuers, issuer.token(header={"kid": f"k{number}"}))
    assert issuer.asked.count("/keys") == 1
    clock.advance(COOL_S)
    issuer.keys = [public(RSA, "new")]
    await issuers.access(issuer.token(header={"kid": "new"}))
    assert issuer.asked.count("/keys") == 2
    assert "signed by" in await why_refused(issuers, issuer.token()), "a key that was taken back counts no more"


async def test_keys_count_a_while_without_their_issuer_and_then_no_more(issuer: Issuer, clock: ManualClock) -> None:
    issuers = letting_in(issuer, clock)
    far: Any = {"exp": NOW_S + 10 * int(STALE_S)}
    await issuers.access(issuer.token(**far))
    issuer.body = b"{"
    clock.advance(FRESH_S)
    await issuers.access(issuer.token(**far))
    clock.advance(STALE_S - FRESH_S)
    assert "signed by" in await why_refused(issuers, issuer.token(**far))


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"issuer": "https://other.example"}},
        {"metadata": {"jwks_uri": "http://169.254.169.254/latest"}},
        {"metadata": {"jwks_uri": "https://169.254.169.254/latest"}},
        {"metadata": {"jwks_uri": "https://127.0.0.1:1/keys"}},
        {"metadata": {"jwks_uri": "https://inside.example/keys"}},
        {"metadata": {"jwks_uri": "file:///etc/passwd"}},
        {"metadata": {"jwks_uri": None}},
        {"redirects": True},
        {"body": b" " * (MAX_BYTES + 1)},
        {"body": b"[]"},
        {"body": b'{"keys": {}}'},
        {"keys": [public(RSA, "rsa", use="enc")]},
        {"keys": [public(RSA, "rsa", alg="RS512")]},
        {"keys": [{**public(RSA, "rsa"), "kty": "oct", "k": "c2VjcmV0"}]},
        {"keys": [{"kid": "rsa", "kty": "RSA"}]},
        {"keys": ["rsa", None, 5]},
    ],
)
async def test_keys_are_taken_from_their_place_alone(
    issuer: Issuer, clock: ManualClock, change: dict[str, Any]
) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["10.0.0.1"]

    for name, value in change.items():
        setattr(issuer, name, value)
    assert "signed by" in await why_refused(letting_in(issuer, clock, resolve=resolve), issuer.token())


async def test_a_short_key_proves_nothing(issuer: Issuer, clock: ManualClock) -> None:
    short = rsa.generate_private_key(public_exponent=65_537, key_size=1_024)  # noqa: S505 - what is refused
    issuer.keys = [public(short, "rsa")]
    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        token = issuer.token(short)
    assert "short" in await why_refused(letting_in(issuer, clock), token)


def test_metadata_is_where_the_specifications_say() -> None:
    assert metadata_urls("https://sso.example/realms/a/") == [
        "https://sso.example/realms/a/.well-known/openid-configuration",
        "https://sso.example/.well-known/oauth-authorization-server/realms/a",
    ]


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://sso.example/realms/a", True),
        ("http://127.0.0.1:8080", True),
        ("http://sso.example", False),
        ("https://ann@sso.example", False),
        ("https://sso.example/?tenant=1", False),
        ("ftp://sso.example", False),
        ("sso.example", False),
        ("", False),
    ],
)
def test_an_issuer_is_known_by_an_https_url(url: str, may: bool) -> None:
    assert is_issuer(url) is may


# --- at the door


async def test_the_door_lets_in_bearers_of_both_kinds_and_tells_others_where_to_go(
    issuer: Issuer, clock: ManualClock
) -> None:
    dotted = Token(digest_of("my.own.token"), Access("robot", frozenset({"call"})))
    guard = Guard(LOOPBACK, [dotted], clock, letting_in(issuer, clock))
    here = {"host": "localhost:8321"}
    admitted = await guard.admitted({**here, "authorization": f"Bearer {issuer.token()}"})
    assert admitted.principal == "okta:ann@acme.example"
    assert (await guard.admitted({**here, "authorization": "bearer my.own.token"})).principal == "robot"
    for header in ({}, {"authorization": "Bearer x"}, {"authorization": f"Bearer {issuer.token(aud='x')}"}):
        with pytest.raises(HttpProblem) as raised:
            await guard.admitted({**here, **header})
        assert raised.value.code is Code.UNAUTHENTICATED
        place = 'resource_metadata="http://localhost:8321/.well-known/oauth-protected-resource"'
        assert place in raised.value._headers["www-authenticate"]
    with pytest.raises(HttpProblem) as raised:
        await guard.admitted({"host": "evil.example", "authorization": f"Bearer {issuer.token()}"})
    assert raised.value.code is Code.HOST_REFUSED
    assert not guard.open


def test_issuers_alone_let_a_server_listen_for_other_machines(clock: ManualClock) -> None:
    one = Grant(issuer="https://sso.example", audience=("a",), claims={}, access=CALL)
    issuers = Issuers([one], clock, url="https://remit.example/")
    guard = Guard.of("192.0.2.1", [], [], clock, private=True, issuers=issuers)
    assert guard.issuers is issuers
    assert issuers.metadata_at("whatever") == "https://remit.example/.well-known/oauth-protected-resource"


def test_attempts_are_bounded() -> None:
    assert issuer_keys._PATIENCE_S < COOL_S < FRESH_S < STALE_S
