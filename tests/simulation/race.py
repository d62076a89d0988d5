"""Two workers and one job: one schedule of it, and what must be true whatever the schedule.

The first has the job; the second takes it over at some moment, as it may once a lease has lapsed, while the first is
merely slow. Either may crash. A third comes when nothing moves any more and brings the job to its end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import msgspec

from remit import CallContext, Run, recipe, tool
from remit.jobs.state import JobHistory, stream_of
from remit.journal import kinds as k
from remit.journal.event import Commit, HeadPatch, verify
from remit.journal.writer import StreamWriter
from remit_testing.clock import ManualClock
from tests.simulation.explore import Choices
from tests.simulation.loop import SteeredLoop
from tests.simulation.process import Process, here
from tests.simulation.shelf import Shelf

JOB: Final = "job_1"
STREAM: Final = stream_of(JOB)
RESULT: Final = [20, 3]


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How far schedules are explored."""

    switches: int
    """How often something else happens although what happened last could go on."""
    crashes: int
    mortal: tuple[str, ...] = ("first", "second")
    """Who may crash."""


class Race:
    """One schedule."""

    def __init__(self, choices: Choices, bounds: Bounds, shelf: type[Shelf] = Shelf) -> None:
        self._choices = choices
        self._switches, self._crashes, self._mortal = bounds.switches, bounds.crashes, bounds.mortal
        self.shelf = shelf()
        self.story: list[str] = []
        self.processes: list[Process] = []
        self._last = ""

    def run(self) -> Race:
        """Run it to its end."""
        loop = SteeredLoop()
        try:
            loop.run(self._main(), self._idle)
        finally:
            loop.end()
        return self

    # --- what happens

    async def _main(self) -> None:
        clock = ManualClock()
        self.processes = [Process(name, self.shelf, clock, TOOLS, [pays]) for name in ("first", "second")]
        created = k.JobCreated(kind="recipe", name="pays", input=msgspec.Raw(b"{}"))
        append = StreamWriter(STREAM, "job", clock).stage(created, patch=HeadPatch(state="pending", due_at=0))
        self.shelf.write(Commit(appends=(append,), at=append.at))
        tasks = [asyncio.create_task(process.work(STREAM, self._holder)) for process in self.processes]
        for process in self.processes:
            await process.ended
        for number in range(3):
            if self.shelf.heads[STREAM].closed or self.shelf.heads[STREAM].state == "waiting":
                break
            last = Process(f"last {number}", self.shelf, clock, TOOLS, [pays])
            self.processes.append(last)
            self._switches = self._crashes = 0
            tasks.append(asyncio.create_task(last.work(STREAM, self._holder)))
            await last.ended

    def _holder(self) -> str | None:
        process = here.get()
        recorded = [k.decode(event.kind, event.data) for event in self.shelf.events[STREAM]]
        process.finished_before = {one.step for one in recorded if isinstance(one, k.ToolInvocationFinished)}
        return self.shelf.heads[STREAM].lease_owner

    # --- what happens next

    def _idle(self) -> bool:
        living = [process for process in self.processes if process.alive]
        if not self.shelf.heads[STREAM].epoch:
            living = living[:1]  # the two are alike: the other way round is the same once more
        possible = {what: process for process in living for what in process.waiting}
        if not possible:
            return False
        goes_on = self._last in possible
        order = sorted(possible, key=lambda what: what != self._last)
        if goes_on and not self._switches:
            order = order[:1]
        mortal = [process for process in living if process.name in self._mortal]
        crashable = [process for process in mortal if self._crashes and not process.ended.done()]
        chosen = self._choices.of(len(order) + len(crashable))
        if chosen >= len(order):
            self._crashes -= 1
            self.story.append(crashable[chosen - len(order)].crash())
            return True
        if goes_on and chosen:
            self._switches -= 1
        self._last = order[chosen]
        self.story.append(possible[self._last].go(self._last))
        return True

    # --- what must be true

    def violations(self) -> list[str]:
        """Every promise that was broken."""
        head, events = self.shelf.heads[STREAM], self.shelf.events[STREAM]
        found = [f"a superseded worker's append was accepted: {one}" for one in self.stale]
        found += [f"recorded, and done again: {one}" for process in self.processes for one in process.redone]
        times = Counter(name for process in self.processes for name in process.effects)
        if times["bank.charge"] > 1:
            found.append("an effect that must not repeat happened twice")
        if verify(STREAM, events) != (head.seq, head.hash):
            found.append("the chain is broken")
        history = JobHistory(events)
        outcomes = Counter(event.kind for event in events)
        if outcomes["job_completed"] > 1:
            found.append("the job ended twice")
        uncertain = any(key.startswith("uncertain:") for _, key in history.waits)
        if isinstance(history.end, k.JobCompleted):
            result = history.end.result
            if not isinstance(result, msgspec.Raw) or msgspec.json.decode(result) != RESULT:
                found.append("it ended with another result")
            if times["bank.charge"] != 1:
                found.append("it says it has charged, and has not")
        elif not (uncertain and head.state == "waiting"):
            found.append(f"it neither ended nor waits for a decision: {head.state}")
        return found

    @property
    def stale(self) -> list[str]:
        """Commits that were accepted though somebody else held the job."""
        return [one for process in self.processes for one in process.stale]

    @property
    def ends(self) -> list[str]:
        """How each worker's pass ended; nothing, where it had none or crashed."""
        results = [process.ended.result() for process in self.processes if process.ended.done()]
        return [ended.how if ended is not None else "nothing" for ended in results]


async def _effect(name: str, number: int, ctx: CallContext) -> int:
    process = here.get()
    await process.gate(f"{name} begins")
    process.did(name, ctx.step)
    await process.gate(f"{name} ends")
    return number


@tool("bank.charge", level="L1")
async def charge(number: int, ctx: CallContext) -> int:
    """Must never happen twice."""
    return await _effect("bank.charge", number, ctx)


@tool("bank.note", level="L1", idempotent=True)
async def write_note(number: int, ctx: CallContext) -> int:
    """May be repeated while its outcome is not recorded."""
    return await _effect("bank.note", number, ctx)


TOOLS: Final = (charge, write_note)


@recipe("pays")
async def pays(run: Run) -> list[int]:
    """An effect that must not repeat, then one that may."""
    charged = (await run.call("bank.charge", {"number": 20})).value
    return [charged, (await run.call("bank.note", {"number": 3})).value]
