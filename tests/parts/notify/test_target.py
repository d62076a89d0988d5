"""`[[notify]]` tables: what they mean, and what is wrong with those that mean nothing."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import SettingsError
from remit.parts.notify.people import read_targets
from remit.parts.notify.target import EVENTS, NotifyTarget, quiet_until
from remit.settings import load
from remit_testing.clock import ManualClock
from tests.opened import OpenRemit
from tests.parts.notify.telling import CODE, Script, Teller
from tests.parts.notify.test_telling import asked, flags, target

HOOK = {"name": "a", "url": "https://example.com/x"}
MAIL = {"name": "a", "email": ["x@example.com"], "from": "remit@example.com", "smtp": "smtps://mail.example.com"}
RUN = {"name": "a", "command": ["/bin/true"]}
CHAT = {"name": "a", "telegram": "-1001", "token": "${BOT}"}


def read(folder: Path, *tables: dict[str, Any]) -> tuple[NotifyTarget, ...]:
    return read_targets(load(env={}, cwd=folder, flags={"notify.targets": list(tables)}))


EVENTS_OF = [
    ({}, EVENTS),
    ({"on": ["failed"]}, ("failed",)),
    ({"after": "30m"}, ("question", "stuck", "uncertain")),
    ({"tools": ["x"]}, ("question", "expired", "uncertain")),
    ({"levels": ["L2"], "after": "1h"}, ("question", "uncertain")),
]


@pytest.mark.parametrize(("keys", "events"), EVENTS_OF, ids=[str(keys) for keys, _ in EVENTS_OF])
def test_without_on_a_target_hears_of_all_that_can_fit(
    tmp_path: Path, keys: dict[str, Any], events: tuple[str, ...]
) -> None:
    (target,) = read(tmp_path, HOOK | keys)
    assert target.events == events


def test_where_a_target_is_says_no_secret(tmp_path: Path) -> None:
    tables: list[dict[str, Any]] = [
        {"name": "a", "url": "https://hooks.slack.com/services/T0000ABC1/B11/abcdefghijkl0123456789XY?key=word"},
        {**MAIL, "name": "b"},
        {"name": "c", "command": ["/bin/page", "--key", "word"]},
        {"name": "d", "url": "${HOOK}"},
        {**CHAT, "name": "e"},
    ]
    assert [target.where for target in read(tmp_path, *tables)] == [
        "https://hooks.slack.com/services/T0000ABC1/B11/…",
        "mail to x@example.com",
        "command /bin/page",
        "${HOOK}",
        "Telegram chat -1001",
    ]


WRONG = [
    ({"name": "a"}, "none of url, email, command, slack, telegram and push is given"),
    (HOOK | {"command": ["x"]}, "url and command are given"),
    ({**HOOK, "name": "A b"}, "name must be"),
    ({"url": "https://x.example"}, "name"),
    (HOOK | {"onn": ["failed"]}, "there is no key onn"),
    (HOOK | {"on": ["completed"]}, "completed"),
    (HOOK | {"after": "soon"}, "after must be"),
    (HOOK | {"after": "1h", "on": ["failed"]}, "after does not fit failed"),
    (HOOK | {"tools": ["x"], "on": ["stuck"]}, "tools and levels do not fit stuck"),
    (HOOK | {"smtp": "smtp://x"}, "smtp does not belong to url"),
    (RUN | {"secret": "s"}, "secret does not belong to command"),
    ({"name": "a", "url": "http://example.com"}, "url must begin with https://"),
    ({"name": "a", "url": "https://u:p@example.com"}, "url contains a user"),
    ({"name": "a", "url": "https://example.com:port/"}, "url must begin with"),
    (MAIL | {"smtp": "https://mail.example.com"}, "smtp must be"),
    (MAIL | {"smtp": "smtp://user@mail.example.com"}, "smtp must be"),
    (MAIL | {"email": ["x@example.com\r\nBcc: y@example.com"]}, "email and from must be addresses"),
    ({key: value for key, value in MAIL.items() if key != "from"}, "email and from must be addresses"),
    (MAIL | {"password": "p"}, "a password is given without a user"),
    (RUN | {"command": "/bin/true"}, "command"),
    (RUN | {"command": [""]}, "command must be"),
    (HOOK | {"quiet": {"hours": "22-7"}}, 'key "hours" is'),
    (HOOK | {"quiet": {"hours": "22:00-07:00", "zone": "Berlin"}}, 'key "zone" does not know'),
    (HOOK | {"quiet": {"zone": "Europe/Berlin"}}, "names no time"),
    (CHAT | {"telegram": "@payments"}, "telegram must be the number of a chat"),
    (CHAT | {"token": ""}, "telegram needs token"),
    (CHAT | {"secret": "s"}, "secret does not belong to telegram"),
    (CHAT | {"api": "http://telegram.example"}, "url must begin with https://"),
]


@pytest.mark.parametrize(("table", "why"), WRONG, ids=[why for _, why in WRONG])
def test_a_table_that_means_nothing_is_refused(tmp_path: Path, table: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, table)
    assert refused.value.code is Code.SETTINGS_INVALID
    assert why in refused.value.message
    assert "notify number 1" in refused.value.message
    assert refused.value.remedy


def test_a_name_stands_for_one_target(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="number 2: another target is called a"):
        read(tmp_path, HOOK, HOOK)


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
