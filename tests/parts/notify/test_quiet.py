"""Quiet hours: what waits for their end, what does not, and when that is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from remit.clock import SECOND
from remit.parts.notify.quiet import quiet_until
from remit_testing.clock import ManualClock
from tests.opened import OpenRemit
from tests.parts.notify.telling import CODE, Script, Teller
from tests.parts.notify.test_telling import asked, flags, target

BERLIN: dict[str, Any] = {"hours": "22:00-07:00", "zone": "Europe/Berlin"}
WEEKEND: dict[str, Any] = {"days": ["sat", "sun"], "zone": "Europe/Berlin"}


def micros(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


ENDS = [
    (BERLIN, "2026-11-29T21:59:59+01:00", None),
    (BERLIN, "2026-11-29T22:00:00+01:00", "2026-11-30T07:00:00+01:00"),
    (BERLIN, "2026-11-30T06:59:59+01:00", "2026-11-30T07:00:00+01:00"),
    (BERLIN, "2026-11-30T07:00:00+01:00", None),
    (BERLIN, "2026-03-28T23:30:00+01:00", "2026-03-29T07:00:00+02:00"),
    (BERLIN, "2026-10-24T23:30:00+02:00", "2026-10-25T07:00:00+01:00"),
    (WEEKEND, "2026-11-29T12:00:00+01:00", "2026-11-30T00:00:00+01:00"),
    (WEEKEND, "2026-11-28T00:00:00+01:00", "2026-11-29T00:00:00+01:00"),
    ({}, "2026-11-29T23:00:00+01:00", None),
]


@pytest.mark.parametrize(("quiet", "now", "end"), ENDS, ids=[f"{now} {end}" for _, now, end in ENDS])
def test_a_message_waits_for_the_end_of_the_quiet_hours(quiet: dict[str, Any], now: str, end: str | None) -> None:
    assert quiet_until(quiet, micros(now), level="L1", expires_at=None) == (micros(end) if end else None)


NIGHT = micros("2026-11-29T23:00:00+01:00")
MORNING = micros("2026-11-30T07:00:00+01:00")
NOW = [
    ("L2", None, True),
    ("L1", MORNING - 1, True),
    ("L1", MORNING, True),
    ("L1", MORNING + 1, False),
    ("", None, False),
]


@pytest.mark.parametrize(("level", "expires_at", "at_once"), NOW)
def test_what_cannot_wait_goes_at_once(level: str, expires_at: int | None, at_once: bool) -> None:
    until = quiet_until(BERLIN, NIGHT, level=level, expires_at=expires_at)
    assert until == (None if at_once else MORNING)


async def test_a_message_is_delayed_and_not_dropped(remit_in: OpenRemit) -> None:
    clock = ManualClock(NIGHT)
    async with remit_in(**CODE, clock=clock, flags=flags(target(quiet=BERLIN))) as remit:
        script = Script()
        teller = Teller(remit, script)
        await asked(remit)
        await teller.round()
        (row,) = await teller.rows()
        assert (script.told, row.state, row.attempts, row.due_at) == ([], "waiting", 0, MORNING)
        clock.advance((MORNING - NIGHT) / SECOND - 1)
        await teller.round()
        assert script.told == []
        clock.advance(1)
        await teller.round()
        assert script.told == ["question"]
