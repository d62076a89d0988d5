"""docs/schedules.md: what it shows is what happens, and its table names the keys that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from remit.parts.schedules.schedule import Schedule
from tests.cli.conftest import Project, project
from tests.parts.schedules.clockwork import micros

__all__ = ["project"]

PAGE = (Path(__file__).parents[2] / "docs/schedules.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= 700


def test_every_key_of_a_table_is_listed_and_no_other() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"\w+", " ".join(rows))) == sorted(Schedule.__struct_fields__)


@pytest.mark.slow
def test_the_examples_are_what_a_person_does(project: Project) -> None:
    (project.folder / "books.py").write_text(block("python"), encoding="utf-8")
    (project.folder / "remit.toml").write_text(block("toml"), encoding="utf-8")
    ran = {words: project.here(*words) for words in commands()}
    assert [done.status for done in ran.values()] == [0] * 7, ran
    assert [name for _, name, *_ in ran] == ["add", "next", "list", "pause", "resume", "run", "rm"]
    told = list(ran.values())
    assert told[1].out.splitlines()[0] == "2026-11-01 09:00:00+01:00"
    assert "monthly" in told[2].out
    jobs = told[5].out.split()
    assert [project.here("show", job, "--json").json["schedule"]["at"] for job in jobs] == [
        micros("2026-09-01T09:00:00+02:00"),
        micros("2026-10-01T09:00:00+02:00"),
    ]
    assert "schedule monthly (revision 1" in project.here("trace", jobs[0]).out
    assert project.here("schedule", "list", "--json").json == []


def commands() -> list[tuple[str, ...]]:
    """The commands of the page."""

    return [tuple(shlex.split(line)[1:]) for line in block("sh").splitlines()]
