"""`remit fork` and `remit diff` at a terminal."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Project


@pytest.fixture
def job(project: Project) -> str:
    """A job that has ended."""
    ran = project.here("run", "greet", "--name", "bob", "--json")
    return str(ran.json["job"])


def test_a_fork_with_another_input_runs_and_is_compared(project: Project, job: str) -> None:
    ran = project.here("fork", job, "--input", "name=ann", "--json")
    assert (ran.status, ran.json["state"]) == (0, "completed")
    assert project.here("diff", job, "last").status == 6
    found = project.here("diff", job, "last", "--json").json
    assert [one["about"] for one in found["differences"]][:1] == ["input"]
    assert project.here("diff", job, job).status == 0
    assert "fork of" in project.here("show", "last").out


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--set", "1.result"), 2),
        (("--set", "1.result={"), 2),
        (("--set", "1.other=1"), 2),
        (("--set", "1.args=[]"), 2),
        (("--tool", "a"), 2),
        (("--at", "99"), 2),
        (("--input", "nope=1"), 2),
    ],
)
def test_what_does_not_fit_is_said(project: Project, job: str, words: tuple[str, ...], status: int) -> None:
    ran = project.here("fork", job, *words)
    assert (ran.status, "->" in ran.err) == (status, True)


def test_a_replay_calls_what_only_reads_again(project: Project, job: str) -> None:
    ran = project.here("replay", job, "--live", "L0", "--json")
    assert (ran.status, ran.json["replay"]["verdict"], set(ran.json["live"])) == (
        0,
        "same",
        {"job", "session", "calls"},
    )
    assert project.here("replay", "--all", "--live", "L0").status == 2


TWO = """
from remit import Run, recipe

@recipe("two")
async def two(run: Run) -> float:
    await run.uuid()
    return await run.random()
"""


def test_a_fork_that_is_followed_tells_what_it_shares(project: Project) -> None:
    (project.folder / "two.py").write_text(TWO)
    job = project.job("two.py")
    made = project.here("fork", job, "--at", "2", "--json").json["job"]
    told = project.here("trace", made, "--follow").out
    assert (told.count(f"taken from {job}"), told.count(f"fork of   {job}")) == (1, 1)
    assert [word in told for word in ("1  uuid", "2  random", "result")] == [True] * 3
