"""When a server wants to be asked again: the one reading of `Retry-After`."""

from __future__ import annotations

from typing import Final, Protocol

from remit.clock import SECOND

_MAX_WAIT_S: Final = 86_400.0 * 31


class Headers(Protocol):
    """Headers, by names in lower case, or in any."""

    def get(self, name: str, default: str, /) -> str:
        """Return the value of a header, or the default."""
        ...


def retry_after(headers: Headers, now: int) -> float | None:
    """Seconds that a response wants its sender to wait, from its headers; None if it does not say (RFC 9110, 10.2.3).

    `now` is in microseconds since the Unix epoch.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            return _bounded(float(value) * unit_s)
        except ValueError:
            pass
        from email.utils import parsedate_to_datetime  # noqa: PLC0415 - slow to load, and few providers send a date

        try:
            return _bounded(parsedate_to_datetime(value).timestamp() - now / SECOND)
        except (ValueError, OverflowError):
            continue
    return None


def _bounded(seconds: float) -> float | None:
    """A wait of at most a month; None for what is not a number."""
    return min(max(0.0, seconds), _MAX_WAIT_S) if seconds == seconds else None  # noqa: PLR0124 - NaN differs from itself
