"""When a rule holds: days of the week, hours of the day, and between two moments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from remit.policy.checks import Verdict
from remit.policy.table import Table, describe

KEYS: Final = ("days", "hours", "since", "until", "zone")
"""Every key of a window's table."""

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]|24):([0-5][0-9])")
_MICROSECONDS: Final = 1_000_000
_DAY_MINUTES: Final = 24 * 60


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A span of time that comes back, or does not; what is empty restricts nothing."""

    days: tuple[int, ...] = ()
    """0 is Monday."""
    hours: tuple[int, int] | None = None
    """Minutes after midnight, the second not included; a window over midnight belongs to the day it begins on."""
    since: int | None = None
    """Microseconds since the Unix epoch."""
    until: int | None = None
    """Not included."""
    zone: str = "UTC"

    def holds(self, now: int) -> Verdict:
        """Return whether a moment, in microseconds since the Unix epoch, is within; None for 0, which is unknown."""
        if now <= 0:
            return None
        if (self.since is not None and now < self.since) or (self.until is not None and now >= self.until):
            return False
        if not self.days and self.hours is None:
            return True
        local = datetime.fromtimestamp(now // _MICROSECONDS, _zone(self.zone))
        day, minute = local.weekday(), local.hour * 60 + local.minute
        if self.hours is not None:
            first, last = self.hours
            if first < last:
                if not first <= minute < last:
                    return False
            elif minute < last:
                day = (day - 1) % len(_DAYS)
            elif minute < first:
                return False
        return not self.days or day in self.days

    def canonical(self) -> dict[str, Any]:
        """As JSON, for the policy hash."""
        said = {"days": list(self.days), "hours": list(self.hours or ()), "since": self.since, "until": self.until}
        return {name: value for name, value in said.items() if value not in ([], None)} | {"zone": self.zone}

    def __str__(self) -> str:
        parts = [", ".join(_DAYS[day] for day in self.days)] if self.days else []
        if self.hours is not None:
            parts.append("-".join(f"{at // 60:02}:{at % 60:02}" for at in self.hours))
        parts += [f"since {_shown(self.since)}"] if self.since is not None else []
        parts += [f"until {_shown(self.until)}"] if self.until is not None else []
        return f"{' '.join(parts)} {self.zone}"


def parse_window(table: Table, key: str) -> Window | None:
    """Return what stands under `during` or `outside`. Raises PolicyError."""
    raw = table.raw(key)
    if raw is None:
        return None
    if not isinstance(raw, Mapping) or not raw:
        raise table.error(key, f"must be a table, not {describe(raw)}", f"It may hold: {', '.join(KEYS)}.")
    below = Table(raw, f"{table.where}, {key}", KEYS)
    zone = below.text("zone", "UTC")
    try:
        _zone(zone)
    except (KeyError, ValueError, OSError):
        raise below.error("zone", f"does not know {zone!r}", 'Write a name such as "Europe/Berlin".') from None
    since, until = _moment(below, "since", zone), _moment(below, "until", zone)
    window = Window(days=_days(below), hours=_hours(below), since=since, until=until, zone=zone)
    if since is not None and until is not None and since >= until:
        raise below.error("until", "is not after since: nothing is between them")
    if not window.days and window.hours is None and since is None and until is None:
        raise table.error(key, "names no time", "Give days, hours, since or until.")
    return window


def _days(table: Table) -> tuple[int, ...]:
    found: set[int] = set()
    for text in table.texts("days"):
        first, dash, last = text.partition("-")
        if first not in _DAYS or (dash and last not in _DAYS):
            raise table.error("days", f"does not know {text!r}", f"Write {', '.join(_DAYS)}, or two such as mon-fri.")
        begin, end = _DAYS.index(first), _DAYS.index(last if dash else first)
        found.update((begin + step) % len(_DAYS) for step in range((end - begin) % len(_DAYS) + 1))
    return tuple(sorted(found))


def _hours(table: Table) -> tuple[int, int] | None:
    if "hours" not in table:
        return None
    text = table.text("hours")
    found = _HOURS.fullmatch(text)
    first, last = (int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])) if found else (0, 0)
    if first == last or last > _DAY_MINUTES:
        raise table.error("hours", f"is {text!r}", 'Write hours of one day, such as "09:00-17:00" or "22:00-06:00".')
    return first, last


def _moment(table: Table, key: str, zone: str) -> int | None:
    """A TOML date or time, or a text of one; without an offset it is in the window's zone."""
    value = table.raw(key)
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        at = None
    if isinstance(at, date) and not isinstance(at, datetime):
        at = datetime(at.year, at.month, at.day)  # noqa: DTZ001 - it gets its zone below
    if not isinstance(at, datetime):
        raise table.error(
            key, f"must be a time, not {describe(value)}", "Write it as 2026-05-01 or 2026-05-01T12:00:00Z."
        )
    return int((at if at.tzinfo else at.replace(tzinfo=_zone(zone))).timestamp() * _MICROSECONDS)


def _zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)  # which keeps those it has read


def _shown(moment: int) -> str:
    return datetime.fromtimestamp(moment / _MICROSECONDS, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
