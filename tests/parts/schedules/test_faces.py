"""`remit schedule`, the page of the console, and what other faces say of a job that a schedule started."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit import Remit
from remit.capability import Look
from remit.cli.services import keep_part
from remit.parts.schedules.schedule import Schedule
from remit.parts.schedules.wiring import check_schedules, schedules_of
from remit.settings import load
from tests.cli.conftest import Project, project
from tests.pages.conftest import serving, token
from tests.parts.schedules.clockwork import HOUR, clockwork, note

__all__ = ["project"]

pytestmark = pytest.mark.slow
MODULE = '''
from remit import Run, recipe

@recipe("tide", schedule="0 3 * * *")
async def tide(run: Run, sea: str = "north") -> str:
    """Say when the tide comes."""
    return f"{sea} {run.scheduled_for}"
'''


def test_the_commands_do_what_they_say(project: Project) -> None:
    (project.folder / "sea.py").write_text(MODULE)
    (project.folder / "remit.toml").write_text('[app]\nmodules = ["sea.py"]\n')
    assert "no schedule" in project.here("schedule", "list").err
    words = ("--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--input", '{"sea": "baltic"}', "--label", "team=sea")
    added = project.here("schedule", "add", "nightly", "tide", *words, "--json").json
    assert (added["state"], added["spec"]["labels"], added["by"]) == ("on", {"team": "sea"}, added["spec"]["principal"])
    assert project.here("schedule", "add", "nightly", "tide", "--every", "1h").status != 0
    assert project.here("schedule", "add", "nightly", "tide", *words, "--jitter", "5m", "--replace").status == 0
    assert "revision   2, person" in project.here("schedule", "show", "nightly").out
    assert project.here("schedule", "next", "nightly", "--from", "2026-10-24", "-n", "3").out.splitlines() == [
        "2026-10-24 02:30:00+02:00",
        "2026-10-25 02:30:00+02:00",
        "2026-10-26 02:30:00+01:00",
    ]
    assert project.here("schedule", "pause", "nightly", "--reason", "low water").status == 0
    assert "low water" in project.here("schedule", "list").out
    assert "paused by" in project.here("schedule", "show", "nightly").out
    assert project.here("schedule", "resume", "nightly").status == 0
    ran = project.here("schedule", "run", "nightly", "--from", "2026-10-24", "--to", "2026-10-26", "--json").json
    assert (len(ran["jobs"]), ran["there"]) == (2, 0)
    told = project.here("show", ran["jobs"][0]).out
    assert "schedule nightly (revision 2" in told
    assert project.here("schedule", "run", "nightly", "--to", "2026-10-26").status == 2
    assert project.here("schedule", "rm", "nightly").status == 0
    assert project.here("schedule", "show", "nightly", "--json").status != 0


async def test_a_worker_lets_what_files_declare_hold_and_starts_what_is_due(tmp_path: Path) -> None:
    flags: dict[str, Any] = {
        "journal.url": str(tmp_path / "journal.db"),
        "schedules.entries": [{"name": "quick", "recipe": "note", "every": "1s"}],
    }

    async with Remit(settings=load(env={}, cwd=tmp_path, flags=flags), recipes=[note], work=False) as remit:
        (upkeep,) = [one for one in remit.beside(asyncio.Event(), "worker") if one.probe == "schedules"]
        working = asyncio.create_task(keep_part(remit, upkeep))
        mark = 0
        while not await remit.service.jobs.rows():
            mark = await remit.runtime.journal.changed(mark)
        working.cancel()
        await asyncio.wait([working])
        (row,) = await schedules_of(remit.service).rows()
        assert (row.source, row.last[0].what) == ("settings", "fired")
    flags["schedules.entries"][0]["every"] = "2s"
    other = load(env={}, cwd=tmp_path, flags=flags)
    found = await check_schedules(Look(other, lambda: Remit(settings=other, work=False)))
    assert [check.verdict for check in found] == ["warn"]


async def test_the_console_shows_schedules_and_changes_them() -> None:
    tokens = [token("ada", "read", "call", "decide"), token("bob", "read")]
    async with clockwork() as work, serving(work.remit, tokens) as browser:
        await browser.log_in("secret-ada")
        assert "No job starts by the clock" in (await browser.get("/schedules")).text
        await work.schedules.add(Schedule(name="hourly", recipe="note", cron="0 * * * *"))
        await work.run_for(HOUR)
        page = await browser.get("/schedules")
        (fired,) = await work.fired()
        for text in ("hourly", "0 * * * *", f"/jobs/{fired.job}", ">Run now<", ">Pause<"):
            assert text in page.text
        fields = [("csrf", page.csrf), ("schedule", "hourly")]
        assert (await browser.send("/schedules/change", [*fields, ("act", "pause")])).status == 303
        assert (await work.schedules.view("hourly")).by == "ada"
        assert ">Resume<" in (await browser.get("/schedules")).text
        assert (await browser.send("/schedules/change", [*fields, ("act", "resume")])).status == 303
        assert (await browser.send("/schedules/run", fields)).status == 303
        assert len(await work.remit.service.jobs.rows()) == 2
        assert "schedule hourly" in (await browser.get(f"/jobs/{fired.job}")).text
        await browser.log_in("secret-bob")
        page = await browser.get("/schedules")
        assert ">Pause<" not in page.text
        assert (await browser.send("/schedules/run", [("csrf", page.csrf), *fields[1:]])).status == 403


async def test_a_retry_keeps_the_time_of_its_job() -> None:
    async with clockwork() as work:
        await work.add()
        await work.run_for(HOUR)
        (fired,) = await work.fired()
        await work.end(fired.job, "failed")
        again = await work.remit.service.jobs.retry(fired.job)
        assert (await work.remit.service.jobs.view(again.job)).schedule == (
            await work.remit.service.jobs.view(fired.job)
        ).schedule
