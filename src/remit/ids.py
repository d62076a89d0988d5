"""Sortable, typed identifiers: a short prefix that names the kind, then a UUIDv7 (RFC 9562) in lower-case base32.

`job_06xk…` sorts by creation time to the millisecond, and within one process strictly by creation order.
"""

from __future__ import annotations

import os
import random
import threading
import time
from functools import lru_cache
from typing import Final

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford: no i, l, o, u to misread
_DIGITS: Final = 26
_BITS: Final = 128
_COUNTER_MAX: Final = (1 << 12) - 1
_PAIRS: Final = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_RANDOM_DIGITS: Final = 12
_TO_DIGITS: Final = (_ALPHABET * 8).encode()
"""One of the 32 digits for each of 256 bytes: random bytes become random digits."""

_random: Final = random.Random(os.urandom(32))  # noqa: S311 - identifiers are unique, not secret
"""Seeded once by the machine: asking it for every identifier would give up Python's lock each time."""
os.register_at_fork(after_in_child=lambda: _random.seed(os.urandom(32)))


class _Moments:
    """The first 14 digits of identifiers: the millisecond, then a counter, so that a burst within one still sorts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._millis = self._counter = 0
        self._time = ""

    def next(self) -> str:
        """Digits that sort after all that were given before, in whatever thread."""
        with self._lock:
            millis, counter = time.time_ns() // 1_000_000, self._counter + 1
            if millis > self._millis or counter > _COUNTER_MAX:
                self._millis, counter = max(millis, self._millis + 1), 0
                self._time = _digits(self._millis, 40)
            self._counter = counter
            # 20 bits: version 7, the counter, the variant of RFC 9562, and two that stay 0.
            return f"{self._time}{_PAIRS[7 << 6 | counter >> 6]}{_PAIRS[(counter & 63) << 4 | 0b1000]}"


_moments: Final = _Moments()


def new_id(prefix: str) -> str:
    """A new identifier of the kind that `prefix` names, 27 characters longer than it."""
    chance = _random.getrandbits(8 * _RANDOM_DIGITS).to_bytes(_RANDOM_DIGITS, "big")
    return f"{prefix}_{_moments.next()}{chance.translate(_TO_DIGITS).decode()}"


def encode(number: int) -> str:
    """128 bits as 26 characters that sort as the number does."""
    return _digits(number, 120)


def _digits(number: int, shift: int) -> str:
    """Two digits for each ten bits, of which the first lie `shift` bits up."""
    pairs = _PAIRS
    return "".join([pairs[(number >> shift) & 1023] for shift in range(shift, -1, -10)])


def decode(text: str) -> int:
    """The number behind 26 characters. Raises ValueError."""
    if len(text) != _DIGITS:
        msg = f"an identifier has {_DIGITS} characters after its prefix, not {len(text)}"
        raise ValueError(msg)
    number = 0
    for char in text:
        number = number << 5 | _ALPHABET.index(char)
    if number >> _BITS:
        msg = f"an identifier holds {_BITS} bits; {text} holds more"
        raise ValueError(msg)
    return number


@lru_cache(maxsize=1_024)
def trace_id(identifier: str) -> str:
    """The 32 hexadecimal digits (W3C trace id) that belong to an identifier: its UUID."""
    return f"{decode(identifier.rpartition('_')[2]):032x}"


def span_id() -> str:
    """16 random hexadecimal digits (W3C span id)."""
    return f"{_random.getrandbits(64):016x}"
