"""By what names we are reached over HTTP, and by whom."""

from __future__ import annotations

import pytest

from remit.mcp_server.guard import LOOPBACK, Guard
from remit.mcp_server.refusal import Refusal
from remit.settings.mcp_client import McpClient

GUARD = Guard([*LOOPBACK, "Team.example"], [])


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:80", "127.0.0.1:8321", "[::1]", "[::1]:8321", "team.example", "team.example:443"],
)
def test_our_names_are_ours_with_any_port(host: str) -> None:
    assert GUARD.admit({"host": host}) is None
    assert GUARD.admit({"host": host, "origin": f"http://{host}"}) is None


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
    with pytest.raises(Refusal, match="Host"):
        GUARD.admit({"host": host})
    with pytest.raises(Refusal, match="Origin"):
        GUARD.admit({"host": "localhost", "origin": f"https://{host}"})


@pytest.mark.parametrize("origin", ["null", "localhost", "file://localhost", "http://localhost/page", "://localhost"])
def test_what_is_no_origin_of_a_page_of_ours_is_refused(origin: str) -> None:
    with pytest.raises(Refusal, match="Origin"):
        GUARD.admit({"host": "localhost", "origin": origin})


def test_who_has_no_token_learns_nothing_else() -> None:
    guard = Guard(LOOPBACK, [McpClient(principal="ann", token="hunter2")])
    with pytest.raises(Refusal, match="Authentication"):
        guard.admit({"host": "evil.example"})
    with pytest.raises(Refusal, match="Host"):
        guard.admit({"host": "evil.example", "authorization": "Bearer hunter2"})
    assert guard.admit({"host": "localhost", "authorization": "Bearer hunter2"}) == "ann"
