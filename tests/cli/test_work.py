"""`remit work`: from an issue to its result, as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit.cli import exit_codes
from tests.cli.conftest import Project
from tests.work.executors.repository import git

pytestmark = pytest.mark.slow

WORKFLOW = """
[executors.mend]
program = "sh"
args = ["-c", "echo mended > clock.txt; echo done"]
isolation = "none"

[executors.fail]
program = "false"
isolation = "none"
"""
RULES = """
[[policy.rules]]
id = "work"
effect = "allow"
tools = ["outbox.*", "executor.*"]
"""


@pytest.fixture
def repository(project: Project) -> Path:
    """Make the project a repository with a workflow, whose programs run without a question."""
    folder = project.folder
    project.env["REMIT_SANDBOX_FOLDER"] = str(folder / "sandbox")  # else root keeps worktrees where every user reaches
    (folder / "clock.txt").write_text("broken\n")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "clock.txt")
    git(folder, "commit", "--quiet", "--message", "Begin")
    (folder / "workflow.toml").write_text(WORKFLOW)
    with (folder / "remit.toml").open("a") as settings:
        settings.write(RULES)
    return folder


def test_an_issue_is_handed_out_shown_and_decided(project: Project, repository: Path) -> None:
    assert project.here("work", "issue", "Mend the clock").out == "local#1\n"
    assert project.here("work", "run", "local#1", "--executor", "fail").status == exit_codes.FAILED
    assert project.here("work", "run", "local#1", "--executor", "mend").status == exit_codes.OK
    view = project.here("work", "show", "local#1", "--json").json
    assert [run["executor"] for run in view["runs"]] == ["mend", "fail"]
    (row,) = project.here("work", "board", "--json").json
    assert (row["issue_ref"], row["state"]) == ("local#1", "review")
    assert project.here("work", "log", "local#1").out == "done\n"
    assert "done  Mend the clock" in project.here("work", "decide", "local#1", "done").out
    assert git(repository, "show", f"run/local%231/{view['runs'][0]['run_id']}:clock.txt") == "mended"


def test_a_person_hands_in_a_result(project: Project, repository: Path) -> None:
    project.here("work", "issue", "Ask the vendor")
    run = project.here("work", "run", "local#1", "--executor", "manual").out.strip()
    handed = ("work", "result", "local#1", run, "--status", "ok", "--commit", "abc", "--tests", "make test => pass")
    assert project.here(*handed).out == "accepted; local#1 is review\n"
    assert project.here("work", "result", "local#1", run, "--status", "fail").status == exit_codes.FAILED


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("work", "show", "local#9"), "WORK_NOT_FOUND"),
        (("work", "show", "nonsense"), "WORK_INVALID"),
        (("work", "run", "local#1", "--executor", "nobody"), "WORK_INVALID"),
        (("work", "issue", "x", "--spec", "missing.md"), "USAGE"),
        (("work", "log", "local#1"), "WORK_NOT_FOUND"),
    ],
)
def test_wrong_words_have_a_code(
    project: Project,
    repository: Path,
    words: tuple[str, ...],
    code: str,
) -> None:
    project.here("work", "issue", "One")
    finished = project.here(*words)
    assert finished.status != exit_codes.OK
    assert code in finished.err


def test_init_writes_what_is_not_there_and_nothing_else(project: Project) -> None:
    assert project.here("work", "init", "--json").json == {"files": ["workflow.toml", ".remit/issue.md"]}
    assert project.here("work", "init", "--json").json == {"files": []}
