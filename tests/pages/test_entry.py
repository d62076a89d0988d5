"""Sessions of people who logged in."""

from __future__ import annotations

import pytest

from remit.http.access import Access
from remit.http.guard import LOOPBACK, Guard, Token, digest_of
from remit.pages import entry
from remit.pages.entry import ConsoleEntry
from remit_testing.clock import ManualClock


async def test_who_logs_in_again_and_again_ends_sessions_of_their_own_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "SESSIONS_OF_ONE", 2)
    tokens = [Token(digest_of(name), Access(name, frozenset())) for name in ("ann", "ben")]
    clock = ManualClock()
    door = ConsoleEntry(Guard(LOOPBACK, tokens, clock), clock)

    async def log_in(name: str) -> dict[str, str]:
        return {"host": "localhost:1", "cookie": (await door.log_in({"host": "localhost:1"}, name)).partition(";")[0]}

    ben = await log_in("ben")
    ann = [await log_in("ann") for _ in range(5)]
    assert [(await door.visitor(headers)).known for headers in ann] == [False, False, False, True, True]
    assert (await door.visitor(ben)).access.principal == "ben"
