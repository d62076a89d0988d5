"""An approval is taken back before a call uses it, also by another process while the call is on its way."""

from __future__ import annotations

import os

import pytest

from tests.cli.conftest import Project, lines_until
from tests.patience import PATIENCE_S

HELD = """
import asyncio, sys
from remit import Run, recipe, tool
from remit.gateway.stages.take_limits import Queue

looked = Queue.__call__

async def held(self, call, proceed):
    if call.tool.meta.name == "note.burn" and call.confirmation is not None:
        sys.stderr.write("on its way\\n")
        sys.stderr.flush()
        await asyncio.to_thread(lambda: open("go").read())
    return await looked(self, call, proceed)

Queue.__call__ = held

@tool("note.burn")
def burn(path: str) -> None:
    \"\"\"Burn.\"\"\"
    open(path, "w").close()

@recipe("burning")
async def burning(run: Run) -> None:
    \"\"\"Burn.\"\"\"
    await run.call("note.burn", {"path": "burnt"})
"""


def test_an_approval_is_taken_back_and_the_job_asks_again(project: Project) -> None:
    job = project.job("notes", "--path", "n.txt")
    question = project.here("confirm", "last", "--json").json["confirmation"]
    early = project.here("confirm", question, "--revoke")
    assert (early.status, "CONFIRMATION_CLOSED" in early.err) == (1, True)
    assert project.here("confirm", question, "--approve").status == 0
    done = project.here("confirm", question, "--revoke", "--reason", "the wrong note")
    assert (done.status, "taken back" in done.err) == (0, True)
    assert project.here("confirm", question, "--json").json["state"] == "withdrawn"
    assert project.here("resume", job).status == 4
    assert not (project.folder / "n.txt").exists()
    anew = project.here("confirm", "last", "--json").json["confirmation"]
    assert anew != question
    assert project.here("confirm", anew, "--approve").status == 0
    assert project.here("resume", job, "--json").json["result"] == "HELLO"


@pytest.mark.slow
def test_an_approval_that_another_process_takes_back_on_the_way_runs_nothing(project: Project) -> None:
    take_back_on_the_way(project, "")


def take_back_on_the_way(project: Project, settings: str) -> None:
    """Hold a call between the look at its approval and its announcement, and take the approval back meanwhile."""
    (project.folder / "held.py").write_text(HELD, encoding="utf-8")
    (project.folder / "remit.toml").write_text(f'[app]\nmodules = ["held.py"]\n{settings}', encoding="utf-8")
    os.mkfifo(project.folder / "go")
    job = project.here("run", "burning", "--json").json["job"]
    question = project.here("confirm", "last", "--json").json["confirmation"]
    assert project.here("confirm", question, "--approve").status == 0
    with project.start("resume", job) as worker:
        lines_until(worker, lambda line: "on its way" in line)
        assert project.here("confirm", question, "--revoke").status == 0
        (project.folder / "go").write_text("on", encoding="utf-8")
        worker.communicate(timeout=PATIENCE_S)
    assert worker.returncode == 4
    assert not (project.folder / "burnt").exists()
    anew = project.here("confirm", "last", "--json").json
    assert (anew["state"], anew["confirmation"] != question) == ("pending", True)
    assert project.here("verify").status == 0
