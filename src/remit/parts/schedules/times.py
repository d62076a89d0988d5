"""The times of a schedule: cron expressions in a zone, or an interval, and the jitter of each. Pure.

Clocks change as for Debian's cron: a time that is skipped comes at the end of the gap, one that comes twice comes once,
and expressions with `*` in minute or hour go by elapsed time. All times are microseconds since the Unix epoch.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256
from typing import Final
from zoneinfo import ZoneInfo

from remit.clock import DAY, SECOND
from remit.codes import Code
from remit.errors import SettingsError, UsageError
from remit.jobs.plans.problem import EXPECTED, parse_duration

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICRO: Final = timedelta(microseconds=1)
_FIELDS: Final = 5
_NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_HOUR: Final = 3_600 * SECOND
_LOOKS: Final = (_HOUR, DAY, 32 * DAY, 367 * DAY, 8 * 366 * DAY)
"""The newest time before a moment is looked for within these; the first of them that holds one holds few."""
COUNTED: Final = 1_000


class Times:
    """The times of one schedule. Raises UsageError (SCHEDULE_INVALID), or SettingsError where a package is missing."""

    def __init__(self, name: str, cron: str, every: str, zone: str, jitter: str) -> None:
        if cron.startswith(_EVERY):
            cron, every = "", cron.removeprefix(_EVERY).strip()
        if bool(cron) == bool(every):
            raise _invalid("give either cron or every", 'Write, for example, cron = "30 2 * * *" or every = "90m".')
        self._name = name
        self._zone = _zone_of(zone)
        self._every = _span(every, "every") if every else 0
        self._cron = _NAMED.get(cron, cron)
        self._jitter = _span(jitter, "jitter") if jitter else 0
        if self._cron:
            self._check()

    def after(self, at: int) -> int | None:
        """Return the first time after a moment; None: none comes."""
        if self._every:
            return (at // self._every + 1) * self._every
        from cronsim import CronSim  # noqa: PLC0415 - only schedules by cron need the extra

        moment = _EPOCH + at * _MICRO
        for local in CronSim(self._cron, moment.astimezone(self._zone)):
            instant: int = (local.astimezone(UTC) - _EPOCH) // _MICRO
            if instant > at:
                return instant
        return None

    def due(self, at: int) -> int:
        """Return when the job of a time starts: jitter later, which follows from name and time."""
        if not self._jitter:
            return at
        number = int.from_bytes(sha256(f"{self._name}\0{at}".encode()).digest()[:8], "big")
        return at + number % self._jitter

    def latest(self, first: int, now: int) -> int:
        """Return the newest of the times from `first` on that are due at a moment; `first` is one, and due."""
        if self._every:
            newest = now // self._every * self._every
            while newest > first and self.due(newest) > now:
                newest -= self._every
            return max(first, newest)
        for look in _LOOKS:
            newest, at = first, self.after(max(first, now - look) - 1)
            while at is not None and self.due(at) <= now:
                newest, at = max(newest, at), self.after(at)
            if newest > first or now - look <= first:
                return newest
        return first

    def count(self, first: int, last: int) -> int:
        """Return how many times there are from one to another, both of them included, COUNTED at most."""
        number, at = 1, self.after(first)
        while at is not None and at <= last and number < COUNTED:
            number, at = number + 1, self.after(at)
        return number

    def _check(self) -> None:
        """Raise for an expression that cannot be read, or of which no time comes."""
        try:
            from cronsim import CronSimError  # noqa: PLC0415 - as above
        except ImportError as error:
            reason = f"cron expressions need {error.name}"
            raise SettingsError(reason, remedy="Install it: pip install 'remit[schedules]', or give every.") from error
        if len(fields := self._cron.split()) != _FIELDS:
            seconds = " Seconds have no field: write every = '15s'." if len(fields) > _FIELDS else ""
            raise _invalid(f"cron has {len(fields)} fields, not five", f"Minute, hour, day, month, weekday.{seconds}")
        try:
            comes = self.after(0) is not None
        except CronSimError as error:
            raise _invalid(f"cron: {self._cron!r}: {error}", "Write, for example, 30 2 * * 1-5.") from error
        if not comes:
            raise _invalid(f"cron: no day is {self._cron!r}", "Correct day and month.")


def _zone_of(name: str) -> tzinfo:
    if name in {"", "UTC"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise _no_zone(name) from error
    except KeyError as error:
        raise _no_zone(name) from error


def _no_zone(name: str) -> UsageError:
    return _invalid(f"zone: there is no {name!r}", "Name a zone such as Europe/Berlin; pip install tzdata brings them.")


def _span(text: str, key: str) -> int:
    millis = parse_duration(text)
    if millis is None or (key == "every" and millis < 1_000):  # noqa: PLR2004 - a second
        raise _invalid(f"{key} must be {EXPECTED}, a second or more", "Write, for example, 15m.")
    return millis * 1_000


def _invalid(reason: str, remedy: str) -> UsageError:
    return UsageError(reason, code=Code.SCHEDULE_INVALID, remedy=remedy)
