"""By what names we are reached over HTTP, and by whom."""

from __future__ import annotations

import pytest

from remit.codes import Code
from remit.errors import SettingsError
from remit.http.access import ANYBODY, SCOPES, Access
from remit.http.guard import LOOPBACK, Guard, Token, digest_of
from remit.http.problem import HttpProblem
from remit_testing.clock import ManualClock

CLOCK = ManualClock()
GUARD = Guard([*LOOPBACK, "Team.example"], [], CLOCK)
ANN, BEN = Access("ann", SCOPES), Access("ben", frozenset({"read"}))
KNOWN = Guard(LOOPBACK, [Token(digest_of("hunter2"), ANN), Token(digest_of("hunter3"), BEN)], CLOCK)


def refusal(guard: Guard, headers: dict[str, str]) -> HttpProblem:
    with pytest.raises(HttpProblem) as raised:
        guard.admit(headers)
    return raised.value


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:80", "127.0.0.1:8321", "[::1]", "[::1]:8321", "team.example", "team.example:443"],
)
def test_our_names_are_ours_with_any_port(host: str) -> None:
    assert GUARD.admit({"host": host}) is ANYBODY
    assert GUARD.admit({"host": host, "origin": f"http://{host}"}) is ANYBODY


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "localhost.evil.example", "localhost:80.evil.example", "evil.example:localhost"),
        *(
            "localhost:",
            "localhost:\uff18\uff10",
            "::1",
            "[::1",
            "[::1]evil.example:80",
            "team.example.",
            "me@localhost",
        ),
    ],
)
def test_no_other_name_is(host: str) -> None:
    assert refusal(GUARD, {"host": host}).code is Code.HOST_REFUSED
    assert refusal(GUARD, {"host": "localhost", "origin": f"https://{host}"}).code is Code.ORIGIN_REFUSED


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:3000", "https://localhost", "http://LOCALHOST:80"],
)
def test_a_page_of_another_program_of_this_machine_is_none_of_ours(origin: str) -> None:
    assert refusal(GUARD, {"host": "localhost:8320", "origin": origin}).code is Code.ORIGIN_REFUSED


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8320", "http://127.0.0.1:8320"),
        ("[::1]:8320", "http://localhost:8320"),
        ("localhost", "http://localhost:80"),
        ("localhost", "https://localhost"),
        ("localhost:8320", "https://team.example"),
    ],
)
def test_a_page_of_ours_may_come_by_another_of_our_names(host: str, origin: str) -> None:
    assert GUARD.admit({"host": host, "origin": origin}) is ANYBODY


@pytest.mark.parametrize("origin", ["null", "localhost", "file://localhost", "http://localhost/page", "://localhost"])
def test_what_is_no_origin_of_a_page_of_ours_is_refused(origin: str) -> None:
    assert refusal(GUARD, {"host": "localhost", "origin": origin}).code is Code.ORIGIN_REFUSED


def test_a_request_without_a_token_learns_nothing_else() -> None:
    refused = refusal(KNOWN, {"host": "evil.example"})
    assert (refused.code, refused.status) == (Code.UNAUTHENTICATED, 401)
    assert refusal(KNOWN, {"host": "evil.example", "authorization": "Bearer hunter2"}).code is Code.HOST_REFUSED


def test_a_token_is_its_client_s_and_no_other_s() -> None:
    assert KNOWN.admit({"host": "localhost", "authorization": "Bearer hunter2"}) is ANN
    assert KNOWN.admit({"host": "localhost", "authorization": "bearer hunter3"}) is BEN
    for wrong in ("", "Bearer", "Bearer ", "Bearer hunter2 ", "Basic hunter2", "hunter2", "Bearer hunter", "Bearer é"):
        assert refusal(KNOWN, {"host": "localhost", "authorization": wrong}).code is Code.UNAUTHENTICATED


def test_a_token_is_refused_from_its_expiry_on() -> None:
    clock = ManualClock()
    guard = Guard(LOOPBACK, [Token(digest_of("x"), ANN, clock.now() + 1_000_000)], clock)
    headers = {"host": "localhost", "authorization": "Bearer x"}
    assert guard.admit(headers) is ANN
    clock.advance(1)
    assert refusal(guard, headers).detail == "The token has expired."


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", ""])  # noqa: S104 - what must be refused
def test_without_tokens_only_this_machine_may_connect(host: str) -> None:
    with pytest.raises(SettingsError, match="no client has a token"):
        Guard.of(host, (), (), CLOCK, private=True)
    Guard.of(host, (), [Token(digest_of("x"), ANN)], CLOCK, private=True)
    Guard.of("127.0.0.1", (), (), CLOCK)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", ""])  # noqa: S104 - what must be refused
def test_tokens_do_not_cross_a_network_unencrypted_unless_the_operator_says_so(host: str) -> None:
    with pytest.raises(SettingsError, match="unencrypted") as refused:
        Guard.of(host, (), [Token(digest_of("x"), ANN)], CLOCK)
    assert refused.value.code is Code.SETTINGS_INVALID
    assert "--without-tls" in refused.value.remedy


def test_a_server_on_the_network_goes_by_its_own_name_and_those_it_is_given() -> None:
    guard = Guard.of("192.0.2.1", ["team.example"], [Token(digest_of("x"), ANN)], CLOCK, private=True)
    headers = {"authorization": "Bearer x"}
    assert guard.admit({**headers, "host": "192.0.2.1:80"}) is ANN
    assert guard.admit({**headers, "host": "team.example"}) is ANN
    assert refusal(guard, {**headers, "host": "localhost"}).code is Code.HOST_REFUSED
