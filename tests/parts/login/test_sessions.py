"""Sessions of people: how they begin, what they prove, and everything that ends them."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from yarl import URL

from remit import Remit
from remit.codes import Code
from remit.errors import SettingsError
from remit.http.guard import LOOPBACK, Guard
from remit.http.people import SESSION
from remit.http.problem import HttpProblem
from remit.journal.event import HeadQuery
from remit.parts.login.provider import LogoutNotice
from remit.parts.login.provider import Person as Identity
from remit.parts.login.sessions import FRESH_S, KIND, LONGEST_S, OF_ONE, STALE_S, LoginSessions
from remit.parts.login.settings import LoginGrant, LoginSettings
from remit.parts.login.wiring import checked_grants
from remit.settings import load
from remit_testing.clock import ManualClock
from tests.http.issuer import EC, NOW_S, STRANGER
from tests.parts.login.conftest import GRANTS, Idp, Person, people_of, serving_people
from tests.patience import PATIENCE_S

ANN = Identity("idp:u1", "u1", "s1", ("payments",), "r1")
LOGOUT: dict[str, Any] = {"http://schemas.openid.net/event/backchannel-logout": {}}


async def test_a_person_logs_in_with_pkce_and_gets_where_they_wanted_to(person: Person, idp: Idp) -> None:
    asked = await person.begin("/jobs?state=failed")
    assert (asked["response_type"], asked["code_challenge_method"], asked["client_id"]) == ("code", "S256", "remit")
    assert asked["redirect_uri"] == f"{person.url}/login/provider/callback"
    idp.nonce = asked["nonce"]
    status, headers, text = await person.back(idp, asked["state"])
    assert (status, headers.get("location")) == (HTTPStatus.SEE_OTHER, "/jobs?state=failed"), text
    assert await person.sees()
    form = idp.forms[-1]
    assert form["code_verifier"] != asked["code_challenge"]
    assert (form["code"], form["grant_type"]) == ("c1", "authorization_code")


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example", "/\\evil.example", "/logout", "/login"])
async def test_the_way_back_stays_on_this_server(person: Person, idp: Idp, to: str) -> None:
    asked = await person.begin(to)
    idp.nonce = asked["nonce"]
    assert (await person.back(idp, asked["state"]))[1]["location"] == "/"


ANSWERS: dict[str, dict[str, str]] = {
    "another state": {"state": "x"},
    "another provider": {"iss": "https://evil.example"},
    "an error": {"error": "access_denied"},
    "no code": {"code": ""},
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_that_this_browser_did_not_ask_for_logs_no_one_in(person: Person, idp: Idp, name: str) -> None:
    asked = await person.begin()
    idp.nonce = asked["nonce"]
    status, _, text = await person.back(idp, **{"state": asked["state"], **ANSWERS[name]})
    assert status == HTTPStatus.FORBIDDEN
    assert "LOGIN_REFUSED" in text
    assert not idp.forms, "the code is not even redeemed"
    assert not await person.sees()


async def test_an_answer_counts_in_the_browser_that_began_alone_and_for_ten_minutes(
    remit: Remit, sessions: LoginSessions, idp: Idp, clock: ManualClock
) -> None:
    async with serving_people(remit, sessions) as ann, serving_people(remit, sessions) as other:
        asked = await ann.begin()
        idp.nonce = asked["nonce"]
        assert (await other.back(idp, asked["state"]))[0] == HTTPStatus.FORBIDDEN
        clock.advance(601)
        assert (await ann.back(idp, asked["state"]))[0] == HTTPStatus.FORBIDDEN
    assert not idp.forms


TOKENS: dict[str, dict[str, Any]] = {
    "another nonce": {"nonce": "x"},
    "no nonce": {"nonce": None},
    "another client": {"aud": "other"},
    "many clients without azp": {"aud": ["remit", "other"]},
    "another azp": {"azp": "other"},
    "another issuer": {"iss": "https://evil.example"},
    "expired": {"exp": NOW_S - 61},
    "of later": {"iat": NOW_S + 120},
    "no subject": {"sub": None},
    "a stranger's key": {"key": STRANGER},
    "a key of another kind": {"key": EC, "algorithm": "ES256", "header": {"kid": "rsa"}},
    "a logout token": {"header": {"typ": "logout+jwt"}},
    "an access token": {"header": {"typ": "at+jwt"}},
    "groups elsewhere": {"groups": None, "_claim_names": {"groups": "src1"}},
    "too many groups": {"groups": None, "hasgroups": True},
    "more groups than count": {"groups": [str(number) for number in range(501)]},
    "a principal that is no text": {"sub": "a\nb"},
}


@pytest.mark.parametrize("name", TOKENS)
async def test_an_id_token_that_proves_less_logs_no_one_in(person: Person, idp: Idp, name: str) -> None:
    asked = await person.begin()
    idp.nonce = asked["nonce"]
    idp.claims |= TOKENS[name]
    status, _, _ = await person.back(idp, asked["state"])
    assert status in {HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED}
    assert not await person.sees()


async def test_who_is_in_no_group_that_counts_is_not_logged_in(remit: Remit, idp: Idp) -> None:
    strict = people_of(remit, idp, GRANTS[1:])
    with pytest.raises(HttpProblem) as raised:
        await strict.begin(ANN._replace(groups=("sales",)), "console")
    assert raised.value.code is Code.LOGIN_REFUSED


async def test_a_session_goes_on_at_another_server_with_its_open_forms(
    remit: Remit, sessions: LoginSessions, idp: Idp
) -> None:
    async with serving_people(remit, sessions) as first:
        await first.logged_in(idp)
        csrf = (await first.get("/inbox")).csrf
        async with serving_people(remit, people_of(remit, idp)) as second:
            ((name, morsel),) = first.session.cookie_jar.filter_cookies(URL(first.url)).items()
            renamed = name.replace(first.url.rpartition(":")[2], second.url.rpartition(":")[2])
            headers = {"cookie": f"{renamed}={morsel.value}"}
            page = await second.get("/inbox", headers)
            assert (page.status, page.csrf) == (HTTPStatus.OK, csrf)


async def test_no_secret_of_a_session_stands_in_the_journal(remit: Remit, sessions: LoginSessions) -> None:
    secret = await sessions.begin(ANN, "cli")
    (head,) = await remit.runtime.journal.heads(_all())
    text = b"".join([event.data for event in await remit.runtime.journal.read(head.stream)])
    for hidden in (secret, secret.removeprefix(SESSION), 'r1"', 'sealed":"r1'):
        assert hidden.encode() not in text
    assert b"sealed" in text


def _all() -> Any:
    return HeadQuery(kind=KIND)


async def test_groups_follow_the_provider_within_a_quarter_of_an_hour(
    sessions: LoginSessions, idp: Idp, clock: ManualClock
) -> None:
    secret = await sessions.begin(ANN, "cli")
    idp.claims |= {"nonce": None, "groups": []}
    clock.advance(FRESH_S - 1)
    session = await sessions.session(secret)
    assert session is not None
    assert session.access.allows("decide")
    assert await sessions.groups("idp:u1") == {"payments"}
    clock.advance(1)
    session = await sessions.session(secret)
    assert session is not None
    assert not session.access.allows("decide")
    assert await sessions.groups("idp:u1") == frozenset()
    assert idp.forms[-1]["refresh_token"] == "r1"


async def test_one_process_asks_the_provider_again_and_the_others_go_on(
    remit: Remit, sessions: LoginSessions, idp: Idp, clock: ManualClock
) -> None:
    secret = await sessions.begin(ANN, "console")
    idp.claims["nonce"] = None
    clock.advance(FRESH_S)
    many = [people_of(remit, idp) for _ in range(5)]
    found = await asyncio.gather(*(one.session(secret) for one in many))
    assert all(found)
    assert len(idp.forms) == 1


class Rotating(Idp):
    """Gives each refresh token once, and kills who asks for the first: before it counts, or before the answer."""

    def __init__(self, *, counts: bool) -> None:
        super().__init__()
        self.valid, self.counts = "r1", counts
        self.kill: Callable[[], object] | None = None

    async def _token(self, request: Request) -> Response:
        if self.kill is not None and not self.counts:
            self.kill()
            return JSONResponse({}, status_code=503)
        if (await request.form())["refresh_token"] != self.valid:
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        self.valid = self.more["refresh_token"] = f"{self.valid}+"
        if self.kill is not None:
            self.kill()
        return await super()._token(request)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [False, True])
async def test_a_server_killed_in_a_refresh_leaves_a_session_that_goes_on_or_asks_for_a_login(
    tmp_path: Path, clock: ManualClock, counts: bool
) -> None:
    file = str(tmp_path / "journal.db")
    async with Rotating(counts=counts) as idp:
        idp.claims["nonce"] = None
        async with Remit(file, clock=clock, work=False) as remit:
            secret = await people_of(remit, idp).begin(ANN, "cli")
        clock.advance(FRESH_S)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.parts.login.refresh_victim", file, idp.url, secret, str(clock.now())
        )
        idp.kill = child.kill
        assert await asyncio.wait_for(child.wait(), PATIENCE_S) == -signal.SIGKILL
        idp.kill = None
        async with Remit(file, clock=clock, work=False) as remit:
            people = people_of(remit, idp)
            assert await people.session(secret) is not None, "the provider's last answer counts"
            clock.advance(120)
            going_on = await people.session(secret) is not None
            assert going_on is not counts
            clock.advance(FRESH_S)
            assert (await people.session(secret) is not None) is going_on


LOSSES: dict[str, tuple[tuple[int, dict[str, Any]] | None, dict[str, Any], bool]] = {
    "it refuses": ((400, {"error": "invalid_grant"}), {}, False),
    "it has trouble": ((503, {}), {}, True),
    "it speaks of another": (None, {"sub": "u2"}, False),
    "it says too little": (None, {"hasgroups": True}, False),
}


@pytest.mark.parametrize("name", LOSSES)
async def test_a_session_ends_once_the_provider_says_no_more_of_the_person(
    sessions: LoginSessions, idp: Idp, clock: ManualClock, name: str
) -> None:
    secret = await sessions.begin(ANN, "cli")
    idp.error, claims, goes_on = LOSSES[name]
    idp.claims |= {"nonce": None, **claims}
    clock.advance(FRESH_S)
    assert (await sessions.session(secret) is not None) is goes_on
    clock.advance(STALE_S - FRESH_S)
    assert await sessions.session(secret) is None, "what it said long ago counts no more"


@pytest.mark.parametrize(
    ("face", "seconds", "goes_on"), [("console", STALE_S, False), ("cli", STALE_S, True), ("cli", LONGEST_S, False)]
)
async def test_time_ends_sessions(
    sessions: LoginSessions, idp: Idp, clock: ManualClock, face: Any, seconds: int, goes_on: bool
) -> None:
    secret = await sessions.begin(ANN, face)
    idp.claims |= {"nonce": None, "exp": NOW_S + LONGEST_S + 600}
    clock.advance(seconds)
    assert (await sessions.session(secret) is not None) is goes_on


async def test_what_only_looks_asks_no_provider(sessions: LoginSessions, idp: Idp, clock: ManualClock) -> None:
    secret = await sessions.begin(ANN, "console")
    clock.advance(FRESH_S)
    assert await sessions.session(secret, renews=False) is not None
    assert not idp.forms


@pytest.mark.parametrize("over", [LogoutNotice("s1", ""), LogoutNotice("", "u1")])
async def test_logging_out_at_the_provider_ends_sessions_here(sessions: LoginSessions, over: LogoutNotice) -> None:
    console, cli = await sessions.begin(ANN, "console"), await sessions.begin(ANN, "cli")
    other = await sessions.begin(Identity("idp:u2", "u2", "s2", ("payments",), ""), "console")
    assert await sessions.end_at_provider(over) == 2
    found = [await sessions.session(secret) is not None for secret in (console, cli, other)]
    assert found == [False, False, True]
    assert await sessions.groups("idp:u1") == frozenset()


ENDS: dict[str, dict[str, Any]] = {
    "another client": {"aud": "other"},
    "no event": {"events": {}},
    "a nonce": {"nonce": "n"},
    "no one": {"sid": None, "sub": None},
    "expired": {"exp": NOW_S - 61},
    "a stranger's key": {"key": STRANGER},
    "an ID token": {"events": None},
}


@pytest.mark.parametrize("name", ["", *ENDS])
async def test_only_a_logout_token_of_the_provider_ends_a_session(
    person: Person, sessions: LoginSessions, idp: Idp, name: str
) -> None:
    secret = await sessions.begin(ANN, "console")
    claims = {"aud": "remit", "sid": "s1", "events": LOGOUT, "header": {"typ": "logout+jwt"}, **ENDS.get(name, {})}
    body = {"logout_token": idp.token(**claims)}
    async with person.session.post(f"{person.url}/login/provider/ended", data=body) as answer:
        assert (answer.status == HTTPStatus.OK) is not bool(name)
    assert (await sessions.session(secret) is not None) is bool(name)


async def test_the_next_click_after_a_logout_is_refused(person: Person, sessions: LoginSessions, idp: Idp) -> None:
    await person.logged_in(idp)
    csrf = (await person.get("/inbox")).csrf
    await sessions.end_at_provider(LogoutNotice("s1", ""))
    answer = await person.send("/inbox/c_x/approve", [("csrf", csrf), ("digest", "x")])
    assert (answer.status, "Log in" in answer.text) == (HTTPStatus.UNAUTHORIZED, True)


async def test_logging_out_here_ends_the_session_everywhere(remit: Remit, person: Person, idp: Idp) -> None:
    await person.logged_in(idp)
    page = await person.get("/inbox")
    assert (await person.send("/logout", [("csrf", page.csrf)])).status == HTTPStatus.SEE_OTHER
    assert not await person.sees()
    (head,) = await remit.runtime.journal.heads(_all())
    assert head.closed


async def test_a_program_carries_a_session_as_its_token(sessions: LoginSessions, clock: ManualClock) -> None:
    secret, guard = await sessions.begin(ANN, "cli"), Guard(LOOPBACK, (), clock, people=sessions)
    access = await guard.admitted({"host": "localhost", "authorization": f"Bearer {secret}"})
    assert (access.principal, sorted(access.groups)) == ("idp:u1", ["payments"])
    await sessions.end(secret)
    with pytest.raises(HttpProblem) as raised:
        await guard.admitted({"host": "localhost", "authorization": f"Bearer {secret}"})
    assert raised.value.code is Code.UNAUTHENTICATED


async def test_of_very_many_sessions_of_one_person_the_oldest_end(sessions: LoginSessions, clock: ManualClock) -> None:
    secrets = []
    for _ in range(OF_ONE + 2):
        secrets.append(await sessions.begin(ANN, "cli"))
        clock.advance(1)
    found = [await sessions.session(secret) is not None for secret in secrets]
    assert found == [False, False, *[True] * OF_ONE]


async def test_an_event_that_someone_wrote_into_a_session_is_seen(remit: Remit, sessions: LoginSessions) -> None:
    secret = await sessions.begin(ANN, "cli")
    assert await sessions.session(secret[:-1] + ("A" if secret[-1] != "A" else "B")) is None
    assert await remit.runtime.journal.verify((await remit.runtime.journal.heads(_all()))[0].stream) == 1


WRONG: dict[str, dict[str, Any]] = {
    "issuer": {"issuer": "http://idp.example"},
    "client": {"client_id": ""},
    "scopes": {"scopes": ("profile",)},
    "mail": {"principal": "okta:{email}"},
    "no text of its own": {"principal": "{sub}"},
    "no claim": {"principal": "okta:ann"},
    "no grants": {"grants": ()},
    "a grant's scope": {"grants": ({"scopes": ["everything"]},)},
    "another issuer's people": {"principal": "okta:{sub}"},
}


@pytest.mark.parametrize("name", WRONG)
def test_settings_that_make_people_doubtful_are_refused(name: str) -> None:
    clients = '[{"principal": "okta:{sub}", "issuer": "https://b.example", "audience": "x"}]'
    settings = load(env={"REMIT_CLIENTS": clients})
    good: dict[str, Any] = {"issuer": "https://a.example", "client_id": "remit", "grants": ({"scopes": ["read"]},)}
    assert checked_grants(settings, LoginSettings(**good)) == (LoginGrant(scopes=("read",)),)
    with pytest.raises(SettingsError):
        checked_grants(settings, LoginSettings(**(good | WRONG[name])))
