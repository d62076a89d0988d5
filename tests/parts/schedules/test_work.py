"""What a worker does with schedules that are due: one job for each time, overlap, times that were missed, waits."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import pytest

from remit import Run, recipe
from remit.capability import Look
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import UsageError
from remit.jobs.state import stream_of as job_stream
from remit.journal.kinds import JobCreated, decode
from remit.parts.schedules.kinds import ScheduleSkipped, ScheduleWaited
from remit.parts.schedules.schedule import Schedule, job_of
from remit.parts.schedules.state import stream_of
from remit.parts.schedules.wiring import check_schedules
from remit.service.options import Options
from tests.parts.schedules.clockwork import DAY, HOUR, Clockwork, clockwork, micros, note


async def test_each_time_has_one_job_that_knows_its_time() -> None:
    async with clockwork() as work:
        await work.add(input={"text": "at "}, labels={"team": "books"})
        await work.run_for(3 * HOUR)
        assert await work.told() == ["fired 01", "skipped 02", "skipped 03"]
        (fired,) = await work.fired()
        assert fired.job == job_of("hourly", 1, micros("2026-11-02T01:00:00+00:00"))
        row = await work.remit.service.jobs.row(fired.job)
        assert row.labels == {"team": "books", "schedule": "hourly"}
        created = decode("job_created", (await work.journal.read(job_stream(fired.job)))[0].data)
        assert isinstance(created, JobCreated)
        assert created.principal == "ann"
        assert created.schedule is not None
        assert (created.schedule.name, created.schedule.at, created.schedule.by) == ("hourly", fired.at, "ann")


async def test_the_job_says_its_time_and_replays() -> None:
    async with clockwork() as work:
        await work.add()
        await work.run_for(HOUR)
        (fired,) = await work.fired()
        await work.run(fired.job)
        assert await work.remit.service.jobs.result(fired.job) == "2026-11-02 01:00:00+00:00"
        assert (await work.remit.service.jobs.replay(fired.job)).verdict == "same"


@pytest.mark.parametrize(
    ("overlap", "told"),
    [
        ("skip", ["fired 01", "skipped 02", "skipped 03", "fired 04"]),
        ("allow", ["fired 01", "fired 02", "fired 03", "fired 04"]),
        ("replace", ["fired 01", "fired 02", "fired 03", "fired 04"]),
        ("queue", ["fired 01", "waited 02", "fired 02", "waited 03"]),
    ],
)
async def test_a_job_that_still_runs_meets_the_next_time(overlap: str, told: list[str]) -> None:
    async with clockwork() as work:
        await work.add(overlap=overlap)
        await work.run_for(3 * HOUR)
        if overlap == "replace":
            events = [await work.journal.read(f"{job_stream(each.job)}/inbox") for each in (await work.fired())[:2]]
            assert [[event.kind for event in each] for each in events] == [["cancel_requested"]] * 2
        await work.end((await work.fired())[0].job)
        await work.run_for(HOUR / 2)
        if overlap != "queue":
            await work.run_for(HOUR / 2)
        assert await work.told() == told


@pytest.mark.slow
async def test_of_those_that_wait_one_is_kept_and_the_newest() -> None:
    async with clockwork() as work:
        await work.add(overlap="queue")
        await work.run_for(6 * HOUR)
        assert await warnings(work) == [], "it was asked to wait"
        for number in range(2):
            await work.end((await work.fired())[number].job)
            await work.run_for(60)
        assert await work.told() == ["fired 01", "waited 02", "fired 02", "waited 06 after 3", "fired 06"]
        view = await work.schedules.view("hourly")
        assert view.state == "on"
        assert [row.missed for row in view.last if row.what == "waited"] == [3, 0]


@pytest.mark.parametrize(
    ("catch_up", "window", "told"),
    [
        ("latest", "1d", ["fired 01", "fired 06 after 4"]),
        ("latest", "20m", ["fired 01", "skipped 06 after 4"]),
        ("none", "1d", ["fired 01", "skipped 06 after 4"]),
        ("all", "1d", ["fired 01", "fired 02", "fired 03", "fired 04", "fired 05", "fired 06"]),
        ("all", "2h", ["fired 01", "fired 05 after 3", "fired 06"]),
    ],
)
async def test_times_that_nothing_worked_at_are_caught_up(catch_up: str, window: str, told: list[str]) -> None:
    async with clockwork() as work:
        await work.add(overlap="allow", catch_up=catch_up, catch_up_window=window)
        await work.run_for(HOUR)
        work.clock.advance(5 * HOUR)
        await work.all_due()
        assert await work.told() == told
        assert (await work.schedules.view("hourly")).next == micros("2026-11-02T07:00:00+00:00")


async def test_all_that_are_caught_up_start_one_after_the_other() -> None:
    async with clockwork() as work:
        await work.add(catch_up="all")
        work.clock.advance(4 * HOUR)
        for number in range(4):
            await work.run_for(60)
            await work.end((await work.fired())[number].job)
        assert [line for line in await work.told() if "fired" in line] == [
            "fired 01",
            "fired 02",
            "fired 03",
            "fired 04",
        ]
        await work.run_for(3 * HOUR)
        assert (await work.told())[-3:] == ["fired 05", "skipped 06", "skipped 07"]


async def test_a_suspended_machine_makes_one_job_of_a_year() -> None:
    async with clockwork() as work:
        await work.add(cron="* * * * *")
        await work.run_for(60)
        await work.end((await work.fired())[0].job)
        work.clock.advance(365 * DAY)
        await work.all_due()
        first, second = await work.fired()
        assert second.missed == 999
        assert work.clock.now() - second.at < 60 * SECOND
        assert first.job != second.job


async def test_jitter_delays_the_start_and_not_the_time() -> None:
    async with clockwork() as work:
        schedule = await work.add(jitter="10m", catch_up="none")
        at = micros("2026-11-02T01:00:00+00:00")
        await work.run_for((schedule.times.due(at) - work.clock.now()) / SECOND - 1)
        assert await work.fired() == []
        await work.run_for(1)
        assert [fired.at for fired in await work.fired()] == [at]


async def test_what_comes_of_a_day_has_a_stream_that_is_closed_the_next_day() -> None:
    async with clockwork() as work:
        await work.add(overlap="allow")
        await work.run_for(2 * DAY)
        days = {day: await work.journal.head(stream_of("hourly", day)) for day in ("2026-11-02", "2026-11-03")}
        assert [(head.seq, head.closed) for head in days.values() if head is not None] == [(23, True), (24, True)]
        assert (await work.journal.head(stream_of("hourly"))).seq == 4  # type: ignore[union-attr]
        assert (await work.remit.service.streams.verify()).problems == ()


async def test_a_job_that_a_dead_process_started_is_recorded_and_not_started_again() -> None:
    async with clockwork() as work:
        schedule, at = await work.add(), micros("2026-11-02T01:00:00+00:00")
        job = job_of("hourly", 1, at)
        await work.remit.service.jobs.start(note(), Options(job=job))
        await work.run_for(HOUR)
        assert [(fired.job, fired.at, fired.next) for fired in await work.fired()] == [
            (job, at, schedule.times.after(at))
        ]
        assert [row.job for row in await work.remit.service.jobs.rows()] == [job]


@pytest.mark.parametrize("change", ["pause", "remove", "replace"])
async def test_also_if_someone_changes_the_schedule_first(change: str) -> None:
    async with clockwork() as work:
        schedule, at = await work.add(), micros("2026-11-02T01:00:00+00:00")
        job = job_of("hourly", 1, at)
        await work.remit.service.jobs.start(note(), Options(job=job))
        if change == "replace":
            await work.schedules.replace(
                "hourly", Schedule(name="hourly", recipe="note", cron=schedule.cron, priority=1)
            )
        else:
            await getattr(work.schedules, change)("hourly")
        await work.run_for(HOUR)
        assert [(fired.job, fired.at) for fired in await work.fired()] == [(job, at)]


async def test_jobs_that_fail_in_a_row_pause_their_schedule() -> None:
    async with clockwork() as work:
        await work.add(pause_on_failure=2)
        for number in range(3):
            await work.run_for(HOUR)
            if number < 2:
                await work.end((await work.fired())[number].job, "failed")
        view = await work.schedules.view("hourly")
        assert (view.state, view.by, view.next) == ("paused", "", None)
        assert (await work.fired())[1].job in view.reason
        await work.schedules.resume("hourly")
        await work.run_for(HOUR)
        assert len(await work.fired()) == 3


async def test_a_job_that_completes_ends_the_row_and_one_that_is_cancelled_does_not_count() -> None:
    async with clockwork() as work:
        await work.add(pause_on_failure=2)
        for number, state in enumerate(("failed", "cancelled", "completed", "failed", "failed")):
            await work.run_for(HOUR)
            await work.end((await work.fired())[number].job, state)
        await work.run_for(HOUR)
        assert [fired.failures for fired in await work.fired()] == [0, 1, 1, 0, 1]
        assert (await work.schedules.view("hourly")).state == "paused"


@pytest.mark.parametrize(
    ("flags", "code"),
    [({"jobs.queue": 1}, "JOBS_FULL"), ({"jobs.quotas": {"recipe": 1}}, "JOB_QUOTA_EXCEEDED")],
)
async def test_where_there_is_no_room_it_waits_on_record(flags: dict[str, Any], code: str) -> None:
    async with clockwork(flags=flags) as work:
        other = await work.remit.service.jobs.start(note(text="other"))
        await work.add(overlap="allow")
        await work.run_for(HOUR)
        assert [
            (occurrence.code, occurrence.next == occurrence.at)
            for occurrence in await work.occurrences()
            if isinstance(occurrence, ScheduleWaited)
        ] == [(code, True)]
        assert (await work.schedules.view("hourly")).state == "waits"
        await work.end(other)
        await work.run_for(60)
        assert await work.told() == ["waited 01", "fired 01"]


@recipe("note", version="2")
async def another(run: Run) -> None:
    """Take no text any more."""


async def warnings(work: Clockwork) -> list[str]:
    """What `remit doctor` says of the schedules."""
    found = await check_schedules(Look(work.remit.settings, lambda: nullcontext(work.remit)))
    return [check.detail for check in found if check.verdict == "warn"]


async def test_doctor_names_what_cannot_start_its_job() -> None:
    async with clockwork() as work:
        await work.add(input={"text": "x"}, pause_on_failure=2, overlap="allow")
        await work.run_for(HOUR)
        assert await warnings(work) == []
        work.clock.advance(HOUR + 120)
        (late,) = await warnings(work)
        assert "no process that has the recipe note starts its job" in late
        work.remit.runtime.programs.recipes.add(another)
        await work.run_for(0)
        (refused,) = await warnings(work)
        assert "had no job" in refused
        assert "INVALID_INPUT" in refused
        await work.run_for(2 * HOUR)
        (paused,) = await warnings(work)
        assert "pauses: 2 jobs in a row failed" in paused


async def test_a_job_that_cannot_be_made_is_a_failure_on_record() -> None:
    async with clockwork() as work:
        await work.add(input={"text": "x"}, pause_on_failure=1)
        work.remit.runtime.programs.recipes.add(another)
        await work.run_for(2 * HOUR)
        assert [
            occurrence.code for occurrence in await work.occurrences() if isinstance(occurrence, ScheduleSkipped)
        ] == ["INVALID_INPUT"]
        assert (await work.schedules.view("hourly")).state == "paused"


async def test_a_holder_whose_lease_was_lost_records_nothing() -> None:
    async with clockwork() as work:
        await work.add()
        work.clock.advance(HOUR)
        lease = (await work.journal.claim(work._terms.claim(work.clock.now(), routes=work.work.routes)))[0]
        frozen = work.work.take(lease, "")
        work.clock.advance(40)
        await work.all_due()
        assert (await frozen.run()).how == "lost"
        assert await work.told() == ["fired 01"]
        assert len(await work.remit.service.jobs.rows()) == 1


async def test_the_clock_may_go_back_and_no_time_comes_again() -> None:
    async with clockwork() as work:
        await work.add(overlap="allow")
        await work.run_for(3 * HOUR)
        work.clock._start -= 2 * HOUR * SECOND
        await work.schedules.pause("hourly")
        await work.schedules.resume("hourly")
        await work.run_for(4 * HOUR)
        assert await work.told() == [f"fired {hour:02}" for hour in range(1, 6)]


@pytest.mark.slow
async def test_a_day_of_many_schedules_has_each_time_once() -> None:
    many = int(os.environ.get("REMIT_TEST_FIRINGS", "600"))
    async with clockwork("2026-11-02T00:00:00+00:00") as work:
        every, names = 60, [f"s{number}" for number in range(many * 60 // DAY or 1)]
        for name in names:
            await work.add(name=name, every=f"{every}s", overlap="allow")
        seconds = many * every // len(names)
        await work.run_for(seconds)
        fired = await work.fired()
        assert len(fired) == seconds // every * len(names)
        assert len({one.job for one in fired}) == len(fired)
        assert sum((await work.remit.service.jobs.counts()).values()) == len(fired)


def test_a_schedule_of_too_many_bytes_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        Schedule(name="large", recipe="note", every="1h", input={"text": "x" * 9_000}).check()
    assert error.value.code is Code.SCHEDULE_INVALID
