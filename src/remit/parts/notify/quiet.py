"""Quiet hours of a target: a window of time, as of a rule of policy, in which messages wait that can wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from remit.clock import DAY, SECOND
from remit.policy.condition import Window, parse_window
from remit.policy.table import Table

_MINUTE: Final = 60 * SECOND
_URGENT: Final = "L2"


def window_of(quiet: Mapping[str, Any]) -> Window | None:
    """Return the window that `quiet` of a target names; None: none. Raises PolicyError."""
    return parse_window(Table({"quiet": quiet}, "the target", ("quiet",)), "quiet") if quiet else None


def quiet_until(quiet: Mapping[str, Any], now: int, *, level: str, expires_at: int | None) -> int | None:
    """Return until when a message waits, at most a day ahead, when it is asked again; None: it goes now.

    `level` is that of its call, and `expires_at` the time from which there is nothing left to answer. Minutes are tried
    one by one, as policy reads them, so that a change of clocks needs no rule of its own.
    """
    window = window_of(quiet)
    if window is None or level == _URGENT or not window.holds(now):
        return None
    minute = now - now % _MINUTE
    minutes = range(minute + _MINUTE, minute + DAY, _MINUTE)
    until = next((at for at in minutes if not window.holds(at)), minute + DAY)
    return None if expires_at is not None and expires_at <= until else until
