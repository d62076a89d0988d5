"""Randomness, injected (rule 12), for what a recipe draws. Identifiers come from ids.py."""

from __future__ import annotations

import os
import random
from typing import Protocol
from uuid import UUID, uuid4


def salt(count: int) -> bytes:
    """Random bytes that cannot be guessed."""
    return os.urandom(count)


class RandomSource(Protocol):
    """A source of randomness."""

    def number(self) -> float:
        """A number in [0, 1)."""
        ...

    def uuid(self) -> UUID:
        """A random UUID (version 4)."""
        ...


class SystemRandomSource:
    """The machine's randomness."""

    def number(self) -> float:
        return random.random()  # noqa: S311 - a recipe's dice, no secret

    def uuid(self) -> UUID:
        return uuid4()
