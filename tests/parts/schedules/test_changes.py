"""Changes of schedules: by people, and by files that a new deployment brings."""

from __future__ import annotations

from typing import Any

import pytest

from remit.codes import Code
from remit.errors import RemitError, SettingsError
from remit.jobs.recipe import recipe
from remit.parts.schedules.changes import Declared
from remit.parts.schedules.schedule import Schedule, read_recipes, read_tables
from remit.parts.schedules.wiring import declared
from remit.settings import load
from tests.parts.schedules.clockwork import HOUR, Clockwork, clockwork, micros, note

FILE = "/shop/remit.toml"


def table(**given: Any) -> dict[str, Declared]:
    given = {"name": "hourly", "recipe": "note", "cron": "0 * * * *", **given}
    return {given["name"]: Declared(Schedule(**given), "settings", FILE)}


async def deploy(work: Clockwork, found: dict[str, Declared], file: str = FILE) -> None:
    await work.schedules.changes.sync(found, file, {"note"})


async def stands(work: Clockwork) -> tuple[str, int]:
    view = await work.schedules.view("hourly")
    return view.state, view.revision


async def test_a_deployment_of_the_same_file_changes_nothing() -> None:
    async with clockwork() as work:
        await deploy(work, table())
        head = await work.journal.head("schedule/hourly")
        await work.run_for(HOUR)
        for _ in range(3):
            await deploy(work, table())
            await work.all_due()
        after = await work.journal.head("schedule/hourly")
        assert head is not None
        assert after is not None
        assert after.seq == head.seq + 1  # the day began
        assert await work.told() == ["fired 01"]


async def test_a_changed_file_is_a_new_revision_and_its_times_go_on() -> None:
    async with clockwork() as work:
        await deploy(work, table())
        await work.run_for(HOUR)
        await work.end((await work.fired())[0].job)
        work.clock.advance(HOUR)
        await deploy(work, table(priority=3))
        await work.all_due()
        assert await work.told() == ["fired 01", "fired 02"]
        assert [occurrence.revision for occurrence in await work.occurrences()] == [1, 2]


async def test_other_times_begin_when_they_are_deployed() -> None:
    async with clockwork() as work:
        await deploy(work, table(cron="0 0 * * *"))
        await work.run_for(5 * HOUR)
        await deploy(work, table(cron="0 * * * *"))
        await work.all_due()
        assert await work.told() == []
        assert (await work.schedules.view("hourly")).next == micros("2026-11-02T06:00:00+00:00")


@pytest.mark.parametrize("cause", ["person", "failures"])
async def test_a_deployment_resumes_nothing(cause: str) -> None:
    async with clockwork() as work:
        await deploy(work, table(pause_on_failure=1))
        if cause == "person":
            await work.schedules.pause("hourly", reason="the books are closed")
        else:
            await work.run_for(HOUR)
            await work.end((await work.fired())[0].job, "failed")
            await work.run_for(HOUR)
        assert (await stands(work))[0] == "paused"
        await deploy(work, table(pause_on_failure=1))
        await deploy(work, table(pause_on_failure=1, priority=2))
        await work.run_for(5 * HOUR)
        assert await stands(work) == ("paused", 2)
        assert len(await work.fired()) == (cause == "failures")


async def test_what_a_file_has_no_more_pauses_and_goes_on_when_it_is_back() -> None:
    async with clockwork() as work:
        await deploy(work, table())
        await deploy(work, {}, "/other/remit.toml")
        assert await stands(work) == ("on", 1)
        await deploy(work, {})
        view = await work.schedules.view("hourly")
        assert (view.state, FILE in view.reason) == ("paused", True)
        await work.run_for(5 * HOUR)
        await deploy(work, table())
        assert await stands(work) == ("on", 1)
        await work.run_for(HOUR)
        assert await work.told() == ["fired 06"]


async def test_what_was_passed_over_in_a_pause_is_not_caught_up() -> None:
    async with clockwork() as work:
        await work.add(catch_up="all")
        await work.schedules.pause("hourly")
        await work.run_for(5 * HOUR)
        await work.schedules.resume("hourly")
        await work.all_due()
        assert await work.told() == []


async def test_what_stands_in_a_file_is_changed_there() -> None:
    async with clockwork() as work:
        await deploy(work, table())
        for act in (
            work.schedules.remove("hourly"),
            work.schedules.replace("hourly", Schedule(name="hourly", recipe="note", every="1h")),
        ):
            with pytest.raises(RemitError) as error:
                await act
            assert error.value.code is Code.SCHEDULE_EXISTS
        await deploy(work, {})
        await work.schedules.remove("hourly")
        assert await work.schedules.rows() == []


async def test_a_name_is_taken_until_it_is_removed_and_then_goes_on_with_its_revisions() -> None:
    async with clockwork() as work:
        same = await work.add()
        await work.add()
        with pytest.raises(RemitError) as error:
            await work.add(every="1h")
        assert error.value.code is Code.SCHEDULE_EXISTS
        await work.schedules.pause("hourly")
        await work.schedules.remove("hourly")
        await work.run_for(HOUR)
        for name in ("hourly", "hurly"):
            with pytest.raises(RemitError) as error:
                await work.schedules.view(name)
            assert error.value.code is Code.SCHEDULE_NOT_FOUND
        assert await work.add() == same
        assert await stands(work) == ("on", 2)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"recipe": "nope"}, Code.UNKNOWN_RECIPE),
        ({"input": {"word": 1}}, Code.INVALID_INPUT),
        ({"cron": "nope"}, Code.SCHEDULE_INVALID),
        ({"name": "No Name"}, Code.SCHEDULE_INVALID),
        ({"name": "a/b"}, Code.SCHEDULE_INVALID),
        ({"labels": {"schedule": "x"}}, Code.SCHEDULE_INVALID),
        ({"catch_up_window": "long"}, Code.SCHEDULE_INVALID),
        ({"pause_on_failure": -1}, Code.SCHEDULE_INVALID),
    ],
)
async def test_what_could_never_run_is_refused(given: dict[str, Any], code: Code) -> None:
    async with clockwork() as work:
        with pytest.raises(RemitError) as error:
            await work.add(**given)
        assert error.value.code is code
        assert await work.schedules.rows() == []


async def test_a_range_of_the_past_has_each_time_once_however_often_it_is_asked_for() -> None:
    async with clockwork() as work:
        await work.add(overlap="allow")
        await work.run_for(2 * HOUR)
        since, until = micros("2026-11-01T22:00:00+00:00"), micros("2026-11-02T03:00:00+00:00")
        first = await work.schedules.run("hourly", since=since, until=until, by="bob")
        assert (len(first.jobs), first.there) == (3, 2)
        again = await work.schedules.run("hourly", since=since, until=until)
        assert (len(again.jobs), again.there) == (0, 5)
        view = await work.remit.service.jobs.view(first.jobs[0])
        assert view.schedule
        assert (view.schedule.at, view.schedule.by) == (since, "bob")


async def test_a_range_may_not_be_too_long_and_a_run_for_now_needs_none() -> None:
    async with clockwork() as work:
        await work.add(every="1m")
        with pytest.raises(RemitError) as error:
            await work.schedules.run("hourly", since=0)
        assert error.value.code is Code.SCHEDULE_INVALID
        assert len((await work.schedules.run("hourly")).jobs) == 1
        assert await work.told() == []


def test_recipes_and_tables_say_which_schedules_there_are() -> None:
    nightly = recipe("nightly", schedule="@daily")(note.function)
    zoned = recipe("zoned", schedule={"name": "z", "cron": "30 2 * * *", "zone": "Europe/Berlin"})(note.function)
    assert [one.words for one in read_recipes([nightly, zoned, note]).values()] == [
        "@daily",
        "30 2 * * * Europe/Berlin",
    ]
    settings = load(env={}, flags={"schedules.entries": [{"name": "nightly", "recipe": "note", "every": "1d"}]})
    assert read_tables(settings)["nightly"].every == "1d"
    with pytest.raises(SettingsError):
        declared(settings, [nightly])


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "n", "recipe": "note"},
        {"name": "n", "recipe": "note", "cron": "0 0 * * *", "zones": "UTC"},
        {"name": "n", "recipe": "note", "every": "1h", "overlap": "never"},
    ],
)
def test_a_table_that_cannot_be_understood_names_its_number(entry: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="schedules number 1"):
        read_tables(load(env={}, flags={"schedules.entries": [entry]}))
