"""Two workers race for one job, in every order within bounds: no effect twice, one history, one result.

Scheduling points are every operation of the storage and the beginning and end of every side effect; a crash may stand
at each of them. What runs is the real runner, gateway and journal. The bounds: every order in which the workers
alternate where one of them waits, plus one switch anywhere else, or one crash of either anywhere; 31 points deep.
With REMIT_TEST_SWITCHES=1 there is a switch beside each crash.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import msgspec
import pytest

from remit.jobs.state import CallRecord, JobHistory
from remit.journal.event import Append, StreamHead
from remit.journal.journal import Journal
from remit.journal.kinds import Payload, ToolInvocationFinished, ToolInvocationStarted
from remit.journal.writer import StreamWriter
from tests.simulation.explore import Choices, Drawn, schedules
from tests.simulation.race import Bounds, Race
from tests.simulation.shelf import Shelf

DRAWN = 400
SWITCHES = int(os.environ.get("REMIT_TEST_SWITCHES", "0"))


def explored(bounds: Bounds) -> Counter[str]:
    """Every schedule within the bounds, by how the workers' passes ended; each keeps every promise."""
    ends: Counter[str] = Counter()

    def one(choices: Choices) -> None:
        race = Race(choices, bounds).run()
        assert race.violations() == [], f"schedule {choices.schedule}: {race.story}"
        ends[", ".join(race.ends)] += 1

    assert sum(1 for _ in schedules(one)) == ends.total()
    return ends


@pytest.mark.slow
def test_a_worker_that_takes_over_from_a_slow_one_changes_nothing() -> None:
    ends = explored(Bounds(switches=1, crashes=0))
    assert ends.total() > 250, "298 when this was written"
    assert ends.keys() == {"completed, nothing", "lost, completed", "lost, parked"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "least", "kinds"),
    [
        ("first", (220, 1_410), {"nothing, completed", "nothing, parked"}),
        ("second", (230, 1_930), {"lost, nothing, completed", "lost, nothing, parked"}),
    ],
    ids=["first", "second"],
)
def test_nor_does_a_crash_of_either_at_any_moment(who: str, least: tuple[int, int], kinds: set[str]) -> None:
    ends = explored(Bounds(switches=SWITCHES, crashes=1, mortal=(who,)))
    assert ends.total() > least[SWITCHES], "245 and 257, with a switch 1,535 and 2,100 when this was written"
    assert ends.keys() > kinds


# --- the simulation can fail


class NoEpochs(Shelf):
    """Lets anybody write who knows the end of the stream, whoever holds it."""

    def advanced(self, append: Append, found: StreamHead | None) -> StreamHead | None:
        """The head after an append."""
        if found is not None:
            append = msgspec.structs.replace(append, epoch=found.epoch)
        return super().advanced(append, found)


def breaks(promise: str, shelf: type[Shelf] = Shelf) -> bool:
    """Whether one of a few hundred schedules, drawn by chance, breaks a promise."""
    bounds = Bounds(switches=1, crashes=1)
    return any(promise in said for seed in range(DRAWN) for said in Race(Drawn(seed), bounds, shelf).run().violations())


def breaks_in_turn(promise: str) -> bool:
    """The same for every schedule in which what happened last goes on while it can."""
    found = False

    def one(choices: Choices) -> None:
        nonlocal found
        found = any(promise in said for said in Race(choices, Bounds(switches=0, crashes=1)).run().violations())

    return any(found for _ in schedules(one))


def test_it_finds_a_storage_that_ignores_epochs() -> None:
    assert breaks("a superseded worker's append was accepted", NoEpochs)


def test_it_finds_an_effect_that_does_not_wait_for_its_announcement(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Journal.append

    async def unflushed(self: Journal, writer: StreamWriter, *payloads: Payload, synced: bool, **more: Any) -> None:
        announces = any(isinstance(payload, ToolInvocationStarted) for payload in payloads)
        await append(self, writer, *payloads, synced=synced and not announces, **more)

    monkeypatch.setattr(Journal, "append", unflushed)
    assert breaks("an effect that must not repeat happened twice")


@pytest.mark.slow
def test_it_finds_a_worker_that_guesses_about_side_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallRecord, "unknown", property(lambda _self: False))
    assert breaks_in_turn("an effect that must not repeat happened twice")


@pytest.mark.slow
def test_it_finds_a_worker_that_does_again_what_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    folds = dict(JobHistory._folds)
    folds[ToolInvocationFinished] = lambda _history, _event: None
    monkeypatch.setattr(JobHistory, "_folds", folds)
    monkeypatch.setattr(CallRecord, "unknown", property(lambda _self: False))
    assert breaks_in_turn("recorded, and done again")


def test_every_schedule_is_tried_once() -> None:
    tried: list[list[int]] = []

    def one(choices: Choices) -> None:
        first = choices.of(3)
        if first < 2:
            choices.of(first + 1)
        tried.append(choices.schedule)

    assert list(schedules(one)) == tried == [[0], [1, 0], [1, 1], [2]]
