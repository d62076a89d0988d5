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
from uuid import UUID

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford: no i, l, o, u to misread
_DIGITS: Final = 26
_BITS: Final = 128
_RANDOM_BITS: Final = 62
_COUNTER_MAX: Final = (1 << 12) - 1
_PAIRS: Final = tuple(a + b for a in _ALPHABET for b in _ALPHABET)

_random: Final = random.Random(os.urandom(32))  # noqa: S311 - identifiers are unique, not secret
"""Seeded once by the machine: asking it for every identifier would give up Python's lock each time."""
os.register_at_fork(after_in_child=lambda: _random.seed(os.urandom(32)))

_lock = threading.Lock()
_last = [0, 0]
"""Millisecond and counter of the newest identifier, so that a burst within one millisecond still sorts."""


def uuid7() -> UUID:
    """A UUIDv7 that is greater than every one this process made before."""
    return UUID(int=_uuid7())


def _uuid7() -> int:
    with _lock:
        millis = time.time_ns() // 1_000_000
        if millis <= _last[0]:
            millis, counter = _last[0], _last[1] + 1
            if counter > _COUNTER_MAX:
                millis, counter = millis + 1, 0
        else:
            counter = 0
        _last[0], _last[1] = millis, counter
    return (millis << 80) | (0x7 << 76) | (counter << 64) | (0b10 << 62) | _random.getrandbits(_RANDOM_BITS)


def new_id(prefix: str) -> str:
    """A new identifier of the kind that `prefix` names, 27 characters longer than it."""
    return f"{prefix}_{encode(_uuid7())}"


def encode(number: int) -> str:
    """128 bits as 26 characters that sort as the number does."""
    pairs = _PAIRS
    return "".join([pairs[(number >> shift) & 1023] for shift in range(120, -1, -10)])


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
