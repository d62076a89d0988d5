"""Every schedule within bounds, one after the other: depth first, each run again from its beginning.

A *schedule* is the list of choices made wherever more than one thing could happen. A run is a function of its schedule,
so that one that failed can be run again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

LIMIT: Final = 1_000_000
"""More schedules than any test should try: its bounds are wrong."""


class Choices:
    """Follows a schedule, and goes on with the first choice where it ends."""

    def __init__(self, schedule: Sequence[int] = ()) -> None:
        self._schedule = schedule
        self.made: list[tuple[int, int]] = []
        """What was chosen, of how many."""

    def of(self, count: int) -> int:
        """One of so many possibilities."""
        if count == 1:
            return 0
        place = len(self.made)
        chosen = self._schedule[place] if place < len(self._schedule) else 0
        self.made.append((chosen, count))
        return chosen

    @property
    def schedule(self) -> list[int]:
        """The choices made."""
        return [chosen for chosen, _ in self.made]


class Drawn(Choices):
    """A schedule by chance, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)

    def of(self, count: int) -> int:
        """One of so many possibilities."""
        return self._chance.randrange(count)


def schedules(run: Callable[[Choices], None]) -> Iterator[list[int]]:
    """Run every schedule there is; each, once it was run."""
    schedule: list[int] = []
    for _ in range(LIMIT):
        choices = Choices(schedule)
        run(choices)
        yield choices.schedule
        made = choices.made
        while made and made[-1][0] + 1 == made[-1][1]:
            made.pop()
        if not made:
            return
        schedule = [*(chosen for chosen, _ in made[:-1]), made[-1][0] + 1]
    msg = f"more than {LIMIT} schedules"
    raise AssertionError(msg)
