"""Commands on jobs that this process lacks something for, and on many jobs at once."""

from __future__ import annotations

import pytest

from remit.codes import Code
from remit.errors import StateError
from remit.service.jobs import Jobs
from tests.cli.conftest import Project, lines_until
from tests.patience import PATIENCE_S

MODULE = """
from remit import Run, recipe{tool_import}
{tool}
@recipe("shouts")
async def shouts(run: Run) -> str:
    return str((await run.call("voice.shout")).value)
{more}
"""
SHOUT = """
@tool("voice.shout", level="L0")
async def shout() -> str:
    return "HEY"
"""
FAILS = """
@recipe("fails")
async def fails(run: Run) -> None:
    raise ValueError("as it has to")
"""


def write(project: Project, *, tool: str = "", more: str = "") -> None:
    """The project's module, with a tool or without."""
    text = MODULE.format(tool_import=", tool" if tool else "", tool=tool, more=more)
    (project.folder / "voice.py").write_text(text, encoding="utf-8")
    (project.folder / "remit.toml").write_text('[app]\nmodules = ["voice.py"]\n', encoding="utf-8")


def test_a_job_that_misses_a_tool_is_left_with_what_is_missing_and_goes_on_where_it_is(project: Project) -> None:
    write(project)
    left = project.here("run", "shouts")
    assert left.status == 1
    assert "UNKNOWN_TOOL" in left.err
    again = project.here("resume", "last", "--json")
    assert (again.status, again.json["error"]["code"]) == (1, "UNKNOWN_TOOL")
    assert again.json["error"]["message"].startswith("process ")
    write(project, tool=SHOUT)
    done = project.here("resume", "last", "--json")
    assert (done.status, done.json["result"]) == (0, "HEY")


def test_a_job_without_its_recipe_here_is_left_and_waits(project: Project) -> None:
    write(project, tool=SHOUT)
    job = project.here("run", "shouts", "--detach").out.strip()
    project.configure(modules=False)
    left = project.here("resume", job, "--json")
    assert (left.status, left.json["error"]["code"]) == (1, "UNKNOWN_RECIPE")


def test_every_error_of_resume_all_is_told_however_soon_a_job_ends(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, more=FAILS)
    jobs = {project.here("run", "fails", "--detach").out.strip() for _ in range(3)}
    ended = project.here("run", "fails", "--json").json["job"]
    rows, resume = Jobs.rows, Jobs.resume

    async def listed_before_it_ended(self: Jobs, *given: object, **more: object) -> object:
        found = await rows(self, *given, **more)  # type: ignore[arg-type]
        return [*found, await self.row(ended)]

    async def too_late(self: Jobs, job: str) -> None:
        if job == ended:
            raise StateError(f"{job} is already failed", code=Code.JOB_FINISHED)
        await resume(self, job)

    monkeypatch.setattr(Jobs, "rows", listed_before_it_ended)
    monkeypatch.setattr(Jobs, "resume", too_late)
    done = project.here("resume", "--all", "--json")
    assert done.status == 3
    assert {one["job"]: one["error"]["code"] for one in done.json} == dict.fromkeys({*jobs, ended}, "JOB_FAILED")


def test_many_jobs_are_replayed_with_one_table_and_one_status(project: Project) -> None:
    write(project, tool=SHOUT, more=FAILS)
    first = project.here("run", "shouts", "--json").json["job"]
    second = project.here("run", "fails", "--json").json["job"]
    same = project.here("replay", "--all")
    assert same.status == 0
    assert "2 jobs: 2 same" in same.err
    write(project, tool=SHOUT)
    gone = project.here("replay", "--since", "1h", "--json")
    assert (gone.status, {one["job"]: one.get("code", "") for one in gone.json}) == (
        1,
        {first: "", second: "UNKNOWN_RECIPE"},
    )
    shown = project.here("replay", "--since", "1h")
    assert (shown.status, "2 jobs: 1 not replayed, 1 same" in shown.err) == (1, True)
    write(project, tool=SHOUT, more=FAILS.replace("as it has to", "otherwise"))
    parted = project.here("replay", "--state", "failed", "--state", "completed")
    assert parted.status == 6
    assert "1 diverged, 1 same" in parted.err
    assert second in next(line for line in parted.out.splitlines() if "diverged" in line)
    assert project.here("replay", "last", "--all").status == 2


@pytest.mark.slow
def test_a_worker_says_which_recipes_it_serves(project: Project) -> None:
    write(project, tool=SHOUT)
    with project.start("worker") as worker:
        said = lines_until(worker, lambda line: "runs plans" in line)
        worker.terminate()
        worker.communicate(timeout=PATIENCE_S)
    assert ", shouts," in said[-1]
    assert "runs plans and the recipes " in said[-1]


def test_a_job_that_waits_in_memory_is_said_to_be_gone(project: Project) -> None:
    (project.folder / "waits.py").write_text(
        "from remit import Run, recipe\n\n@recipe('waits_in_memory')\nasync def waits_in_memory(run: Run) -> None:\n"
        "    await run.wait_signal('go')\n",
        encoding="utf-8",
    )
    done = project.here("--journal", ":memory:", "run", "waits.py")
    assert done.status == 4
    assert "in memory" in done.err
    assert "remit --journal :memory:" not in done.err
