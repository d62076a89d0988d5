"""What came back from a target."""

from __future__ import annotations

from typing import Final, NamedTuple

LONGEST_S: Final = 30.0
"""Seconds that an attempt may take in all."""
SILENCE_S: Final = 10.0
"""Seconds that a server may say nothing."""


class Answer(NamedTuple):
    """How an attempt ended."""

    ok: bool
    """Whether the target took the message."""
    words: str
    """What came back, in words for people, without secrets."""
    pause_s: float = 0.0
    """Seconds that the target asks us to wait before the next attempt."""
