"""`remit jobs`: which ones are listed, under which identifiers, and how they are watched."""

from __future__ import annotations

import json
import re
from itertools import takewhile

import pytest

from remit.cli.tables import short_ids
from tests.cli.conftest import Project
from tests.cli.test_text import Screen

CTRL_C = "\x03"
STUCK = """
from remit import Run, recipe

@recipe
async def changes(run: Run) -> None:
    await run.now()
    await run.wait_signal("go")
"""

WORKS = """
import asyncio, sys
from remit import Run, recipe

@recipe
async def works(run: Run) -> None:
    await run.now()
    await run.sleep(0.01)
    print("working on it", file=sys.stderr, flush=True)
    await asyncio.Event().wait()
"""


def listed(project: Project, *words: str) -> list[str]:
    return [row["job"] for row in project.here("jobs", *words, "--json").json]


def stuck(project: Project) -> str:
    """A job whose code goes another way by now."""
    (project.folder / "changing.py").write_text(STUCK, encoding="utf-8")
    job: str = project.here("run", "changing.py", "--json").json["job"]
    (project.folder / "changing.py").write_text(STUCK.replace("run.now()", "run.uuid()"), encoding="utf-8")
    assert project.apart("--module", "changing.py", "resume", job).status != 0
    return job


def test_jobs_can_be_chosen_by_recipe_and_age(project: Project) -> None:
    report, fails = project.job("report"), project.job("fails")
    assert listed(project, "--recipe", "report") == [report]
    assert listed(project, "--recipe", "none") == []
    assert listed(project, "--since", "1h", "--recipe", "fails") == [fails]
    assert project.here("jobs", "--recipe", "none").err == "no such jobs\n"
    assert project.here("jobs", "--since", "soon").status == 2


def test_jobs_can_be_chosen_by_the_size_of_a_label_and_printed_as_csv(project: Project) -> None:
    jobs = [project.here("run", "report", "--label", f"amount={n}", "--json").json["job"] for n in (9, 250)]
    assert listed(project, "--label", "amount>=100") == [jobs[1]]
    assert listed(project, "--label", "amount<100") == [jobs[0]]
    header, *lines = project.here("jobs", "--label", "amount>0", "--csv").out.splitlines()
    assert header.endswith(",label.amount")
    assert [line.split(",")[0] + line.rpartition(",")[2] for line in lines] == [f"{jobs[1]}250", f"{jobs[0]}9"]
    assert project.here("jobs", "--label", "amount>much").status == 2
    assert project.here("jobs", "--csv", "--json").status == 2


def test_jobs_can_be_chosen_by_the_states_that_are_shown(project: Project) -> None:
    waiting, odd = project.job("waits"), stuck(project)
    assert listed(project, "--state", "stuck") == [odd]
    assert listed(project, "--state", "stopped") == []
    assert listed(project, "--state", "waiting") == [odd, waiting]
    assert listed(project, "--state", "stuck", "--state", "waiting") == [odd, waiting]
    assert listed(project, "--state", "stuck", "--limit", "1") == [odd]


@pytest.mark.slow
def test_a_job_whose_process_was_stopped_is_found_as_stopped(project: Project) -> None:
    with project.terminal("run", "forever") as screen:
        job = screen.expect(r"job (job_\w+)")[1]
        screen.expect("a read is under way")
        screen.process.kill()
        screen.end()
    assert listed(project, "--state", "stopped") == [job]


@pytest.mark.slow
def test_the_story_of_a_job_that_was_stopped_says_so(project: Project) -> None:
    (project.folder / "works.py").write_text(WORKS, encoding="utf-8")
    with project.terminal("run", "works.py") as screen:
        screen.expect("working on it")
        screen.type(CTRL_C)
        screen.end()
    out = project.here("trace", "last").out
    assert re.search(r"\d  stopped +until now", out)
    assert not re.search(r"working +until now", out)


def test_a_beginning_or_an_ending_of_an_identifier_is_enough(project: Project) -> None:
    job = project.job("report")
    for part in (job[-8:], job[:-2], job):
        assert project.here("show", part).out.startswith(f"{job}  report")
    project.job("report")
    done = project.here("show", "job_")
    assert (done.status, "fits 2 jobs" in done.err) == (2, True)


def test_a_question_answers_to_a_beginning_or_an_ending(project: Project) -> None:
    project.job("notes", "--path", "n")
    (question,) = project.here("confirm", "--json").json
    name = question["confirmation"]
    for part in (name[-8:], name[:-2]):
        assert project.here("confirm", part, "--json").json["confirmation"] == name


def test_identifiers_are_short_at_a_terminal_and_whole_elsewhere() -> None:
    ids = ["job_" + "0" * 18 + "abcd1234", "job_" + "0" * 18 + "abcd5678"]
    assert short_ids(Screen(80), ids) == ["abcd1234", "abcd5678"]
    assert short_ids(Screen(None), ids) == ids
    alike = ["job_1xabcd1234", "job_2yabcd1234", "job_1xabcd1234"]
    assert short_ids(Screen(80), alike) == ["xabcd1234", "yabcd1234", "xabcd1234"]


@pytest.mark.slow
def test_what_a_terminal_shows_of_an_identifier_is_taken_by_every_command(project: Project) -> None:
    job = project.job("waits")
    with project.terminal("jobs") as screen:
        short = screen.expect(rf"(?m)^({job[-8:]}) ")[1]
        assert screen.end() == 0
    for words in (("show",), ("trace",), ("replay",), ("verify",), ("artifacts",)):
        assert project.here(*words, short).status == 0, words
    assert project.here("signal", short, "go").status == 0
    assert project.here("resume", short).status == 0


@pytest.mark.slow
def test_jobs_are_watched_in_place_until_ctrl_c(project: Project) -> None:
    job = project.job("waits")
    with project.terminal("jobs", "--watch") as screen:
        screen.expect(rf"{job[-8:]} +waiting")
        assert project.here("signal", job, "go").status == 0
        assert project.here("resume", job).status == 0
        screen.expect(rf"{job[-8:]} +completed")
        screen.type(CTRL_C)
        assert screen.end() == 130
        assert "\x1b[J" in screen.raw, "drawn again in place"


@pytest.mark.slow
def test_watching_without_a_terminal_tells_each_change_once(project: Project) -> None:
    job = project.job("waits")
    with project.start("jobs", "--watch", "--json", "--recipe", "waits") as process:
        assert process.stdout is not None
        changes = (json.loads(line)["state"] for line in process.stdout)
        assert next(changes) == "waiting"
        assert project.here("cancel", job).status == 0
        states = list(takewhile(lambda state: state != "cancelled", changes))
        assert states in ([], ["running"]), "the watcher may look while the job ends"
        process.terminate()
    assert process.returncode == 130
