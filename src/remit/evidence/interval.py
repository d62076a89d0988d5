"""The time that a package is about, if it is about all that was recorded in one: an interval of ISO 8601."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - Python 3.9 knows no datetime.UTC
_MICROSECOND = timedelta(microseconds=1)
_OPEN = ("call", "job", "session", "ticket", "work")
"""The roots that people and agents work in: a package is whole once all of these have ended."""


class Interval(NamedTuple):
    """All time from a moment to before another, both in microseconds since the Unix epoch."""

    since: int
    until: int

    def __str__(self) -> str:
        return "/".join((_EPOCH + at * _MICROSECOND).strftime(_FORM) for at in self)

    @property
    def file_name(self) -> str:
        """The interval without the signs that a file name cannot have."""
        return str(self).replace(":", "").replace("/", "--")

    def is_over(self, streams: Iterable[str], ended: Mapping[str, bool]) -> bool:
        """Return whether every job and ticket among these streams has ended; sessions and calls never do."""
        roots = [stream for stream in streams if stream.count("/") == 1 and stream.partition("/")[0] in _OPEN]
        return bool(roots) and all(ended.get(stream, False) for stream in roots)


def read_interval(scope: str) -> Interval | None:
    """Return the interval that a scope is, in the one form that packages have; None: it is a stream."""
    texts = scope.split("/")
    try:
        interval = Interval(*((_moment(text) - _EPOCH) // _MICROSECOND for text in texts))
    except (TypeError, ValueError, OverflowError):
        return None
    return interval if str(interval) == scope and interval.since < interval.until else None


def _moment(text: str) -> datetime:
    return datetime.strptime(text, _FORM).replace(tzinfo=timezone.utc)  # noqa: UP017 - as above
