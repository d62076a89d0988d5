"""Places of steps are found without reading all events, wherever they stand."""

from __future__ import annotations

import random

from remit.journal import kinds as k
from remit.journal.event import Event
from remit.parts.forks.line import StepPlaces


class Pages:
    """Events in memory; counts how often it was asked."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.asked = 0

    async def page(self, _stream: str, after: int = 0, limit: int = 1_000) -> list[Event]:
        self.asked += 1
        return self.events[after : after + limit]


def recorded(chance: random.Random, length: int) -> tuple[list[Event], dict[str, int]]:
    """A run of calls, gathers and keys, and before which event each step begins."""
    events: list[Event] = []
    steps: dict[str, int] = {}

    def add(payload: k.Payload) -> None:
        events.append(Event("s", len(events) + 1, payload.KIND, 0, k.encode(payload), b""))

    add(k.JobCreated(kind="recipe", name="x"))
    for number in range(1, length):
        sort = chance.random()
        places = (
            [str(number)] if sort < 0.7 else [f"key{number}"] if sort < 0.8 else [f"{number}.{b}.1" for b in range(3)]
        )
        for place in places:
            steps[place] = len(events)
            for _ in range(chance.choice([1, 2, 2, 7])):
                add(k.ToolInvocationStarted(invocation_id="i", step=place, tool_name="t.t"))
            if chance.random() < 0.1:
                add(k.StepCompensated(step="1", undo_step="undo:1"))
    return events, steps


async def test_every_step_is_found_where_it_begins() -> None:
    chance = random.Random(7)
    for length in (2, 9, 60, 700):
        events, steps = recorded(chance, length)
        for place in chance.sample(sorted(steps), min(12, len(steps))):
            journal = Pages(events)
            assert await StepPlaces(journal, "s", 0, len(events)).before(place) == steps[place]  # type: ignore[arg-type]
            assert journal.asked < 25 or not place.isdigit()
        places = StepPlaces(Pages(events), "s", 0, len(events))  # type: ignore[arg-type]
        assert await places.before("9999") is None
        assert await places.before("nothing") is None
