"""`remit work`: from an issue to its result, as a person types it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from remit.cli import exit_codes
from remit.parts.work.forms import Form, write_in
from remit.parts.work.result import Changes, Test, WorkResult
from tests.cli.conftest import Project
from tests.parts.work.executors.repository import git
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

WORKFLOW = """
[executors.mend]
program = "sh"
args = ["-c", "echo mended > clock.txt; echo done"]
isolation = "none"

[executors.hang]
program = "sh"
args = ["-c", "echo up; setsid sleep 86400 & echo $! > FIFO; sleep 86400"]
isolation = "none"

[executors.fail]
program = "sh"
args = ["-c", "echo token=abc123def; echo no such column >&2; exit 1"]
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
    (folder / "workflow.toml").write_text(WORKFLOW.replace("FIFO", str(folder / "up")))
    os.mkfifo(folder / "up")
    with (folder / "remit.toml").open("a") as settings:
        settings.write(RULES)
    return folder


def test_an_issue_is_handed_out_shown_and_decided(project: Project, repository: Path) -> None:
    assert project.here("work", "issue", "Mend the clock").out == "local#1\n"
    failed = project.here("work", "run", "local#1", "--executor", "fail")
    assert (failed.status, failed.out.splitlines()[-1]) == (exit_codes.FAILED, "    | no such column")
    ran = project.here("work", "run", "local#1", "--executor", "mend")
    assert ran.status == exit_codes.OK
    assert "local#1 is review" in ran.out
    assert "It committed its work." in ran.out
    assert "{" not in ran.out
    view = project.here("work", "show", "local#1", "--json").json
    assert [run["executor"] for run in view["runs"]] == ["mend", "fail"]
    (row,) = project.here("work", "board", "--json").json
    assert (row["issue_ref"], row["state"]) == ("local#1", "review")
    assert project.here("work", "log", "local#1").out == "done\n"
    assert "done  Mend the clock" in project.here("work", "decide", "local#1", "done").out
    assert git(repository, "show", f"run/local%231/{view['runs'][0]['run_id']}:clock.txt") == "mended"


def test_the_result_of_a_run_is_what_json_holds(project: Project, repository: Path) -> None:
    project.here("work", "issue", "Mend the clock")
    ran = project.here("work", "run", "local#1", "--executor", "mend", "--json").json
    assert (ran["issue_ref"], ran["state"], ran["result"]["status"]) == ("local#1", "review", "ok")
    assert ran["result"]["run_id"] == ran["run_id"]


def test_ctrl_c_leaves_neither_a_process_nor_an_active_run(project: Project, repository: Path) -> None:
    project.here("work", "issue", "Mend the clock")
    with project.start("work", "run", "local#1", "--executor", "hang") as running:
        survivor = Path("/proc", (repository / "up").read_text().strip())
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE_S)
    assert running.returncode == exit_codes.CANCELLED
    assert not survivor.exists()
    view = project.here("work", "show", "local#1", "--json").json
    assert (view["active"], view["state"], view["runs"][0]["standing"]) == ("", "todo", "stopped")


def test_what_would_control_the_terminal_is_an_escape_there_and_itself_in_a_pipe(
    project: Project, repository: Path
) -> None:
    hostile = "\x1b[2J\x1b]52;c;eA==\x07\u202ehidden"
    (repository / "say.txt").write_text(hostile)
    with (repository / "workflow.toml").open("a") as file:
        file.write(f'[executors.say]\nprogram = "cat"\nargs = ["{repository / "say.txt"}"]\nisolation = "none"\n')
    project.here("work", "issue", "Mend the clock")
    project.here("work", "run", "local#1", "--executor", "say")
    assert project.here("work", "log", "local#1").out == hostile
    with project.terminal("work", "log", "local#1") as screen:
        screen.expect("hidden")
        assert "\x1b[2J" not in screen.text
        assert "\u202e" not in screen.text


def test_a_person_hands_in_a_result(project: Project, repository: Path) -> None:
    project.here("work", "issue", "Ask the vendor")
    run = project.here("work", "run", "local#1", "--executor", "manual").out.strip()
    handed = ("work", "result", "local#1", run, "--status", "ok", "--commit", "abc", "--tests", "make test => pass")
    assert project.here(*handed).out == "accepted; local#1 is review\n"
    assert project.here("work", "result", "local#1", run, "--status", "fail").status == exit_codes.FAILED


def test_a_part_of_an_issue_is_shown_with_it(project: Project, repository: Path) -> None:
    project.here("work", "issue", "All clocks")
    assert project.here("work", "issue", "One clock", "--parent", "local#1").out == "local#2\n"
    assert "WORK_INVALID" in project.here("work", "issue", "One clock", "--parent", "nonsense").err
    project.here("work", "decide", "local#2", "done")
    whole = project.here("work", "show", "local#1").out
    assert "  1 of 1 part done\n    local#2  done  One clock\n" in whole
    assert "  part of local#1\n" in project.here("work", "show", "local#2").out


@pytest.mark.parametrize("form", ["json", "pb", "textproto", "txt"])
def test_a_result_is_taken_from_a_file_of_every_form(project: Project, repository: Path, form: Form) -> None:
    if form in {"pb", "textproto"}:
        pytest.importorskip("google.protobuf")
    project.here("work", "issue", "Ask the vendor")
    run = project.here("work", "run", "local#1", "--executor", "manual").out.strip()
    result = WorkResult(
        issue_ref="local#1",
        run_id=run,
        status="ok",
        changes=Changes(pr="https://git.example/1"),
        tests=(Test(result="n/a"),),
        summary="They know.",
    )
    (repository / f"result.{form}").write_bytes(write_in(form, result))
    refused = project.here("work", "result", "local#1", "2026-02-14-work-0099", "--file", f"result.{form}")
    assert "WORK_INVALID" in refused.err
    assert project.here("work", "result", "local#1", "--file", f"result.{form}").out == "accepted; local#1 is review\n"
    assert project.here("work", "show", "local#1", "--jq", ".results[].summary").out == "They know.\n"


def test_a_result_names_the_active_run_unless_told_otherwise(project: Project, repository: Path) -> None:
    project.here("work", "issue", "Ask the vendor")
    assert "WORK_NOT_FOUND" in project.here("work", "result", "local#1", "--pr", "https://git.example/1").err
    run = project.here("work", "run", "local#1", "--executor", "manual").out.strip()
    assert "USAGE" in project.here("work", "result", "local#1").err
    handed = project.here("work", "result", "local#1", "--pr", "https://git.example/1", "--tests", "n/a")
    assert handed.out == "accepted; local#1 is review\n"
    late = project.here("work", "result", "local#1", run, "--status", "fail", "--summary", "No, wait.")
    assert late.out == "archived (stale_result_discarded); local#1 is review\n"
    (shown,) = project.here("work", "late", "local#1", "--json").json
    assert (shown["run_id"], shown["status"], shown["summary"]) == (run, "fail", "No, wait.")
    assert "No, wait." in project.here("work", "late", "local#1").out
    assert project.here("work", "result", "local#1", "--adopt").out == "accepted; local#1 is doing\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("work", "show", "local#9"), "WORK_NOT_FOUND"),
        (("work", "show", "nonsense"), "WORK_INVALID"),
        (("work", "run", "local#1", "--executor", "nobody"), "WORK_INVALID"),
        (("work", "issue", "x", "--spec", "missing.md"), "USAGE"),
        (("work", "log", "local#1"), "WORK_NOT_FOUND"),
        (("work", "late", "local#9"), "WORK_NOT_FOUND"),
        (("work", "log", "local#1", "../../.."), "WORK_INVALID"),
        (("work", "run", "local#1", "--executor", "mend", "--role", "../x"), "WORK_INVALID"),
        (("work", "run", "I_kwDOABCD", "--executor", "mend"), "WORK_INVALID"),
        (("work", "run", "1234567", "--executor", "mend"), "WORK_INVALID"),
        (("work", "result", "local#1", "x", "--status", "ok"), "WORK_INVALID"),
        (("work", "result", "local#1", "x", "--status", "ok", "--file", "x.json"), "USAGE"),
        (("api", "work.submit", "issue_ref=local#1", "run_id=x-1", "document=!", "form=txt"), "INVALID_INPUT"),
        (("api", "work.submit", "issue_ref=local#1", "run_id=x-1", "document=", "form=xml"), "INVALID_INPUT"),
        (("work", "result", "local#1", "x", "--file", "missing.json"), "USAGE"),
        (("work", "result", "local#1", "x", "--file", "workflow.toml"), "WORK_INVALID"),
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


def test_init_refuses_a_folder_without_a_repository(project: Project) -> None:
    refused = project.here("work", "init")
    assert refused.status == exit_codes.USAGE
    assert "env_unavailable" in refused.err
    assert not (project.folder / "workflow.toml").exists()


def test_init_writes_what_is_not_there_and_nothing_else(project: Project) -> None:
    git(project.folder, "init", "--quiet")
    files = ["workflow.toml", ".remit/issue.md", ".remit/workflow.schema.json"]
    assert project.here("work", "init", "--json").json == {"files": files}
    assert project.here("work", "init", "--json").json == {"files": []}


def test_turns_of_serve_are_lines_of_stdout(project: Project, repository: Path) -> None:
    with (repository / "workflow.toml").open("a") as file:
        file.write('\n[groups.all]\nrole = "all"\nexecutor = "mend"\nlisten_labels = ["kind:task"]\n')
    project.here("work", "issue", "Mend the clock", "--label", "kind:task")
    served = project.apart("work", "serve", "--once", "--json")
    turns = [json.loads(line) for line in served.out.splitlines()]
    assert served.status == 0, served.err
    assert ("local#1", "start") in [(step["issue_ref"], step["action"]) for turn in turns for step in turn["steps"]]


STAGED = {
    "issue": (("issue", "Next", "--spec", "clock.txt"), ["outbox.create"]),
    "run": (("run", "local#1", "--executor", "mend"), ["journal", "executor.mend", "job"]),
    "by hand": (("run", "local#1", "--executor", "manual"), ["journal"]),
    "decide": (("decide", "local#1", "done"), ["journal", "git"]),
    "stop": (("stop", "local#1"), []),
    "write": (("write", "local#1"), []),
}


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(("command", "by"), STAGED.values(), ids=STAGED)
def test_what_is_staged_is_shown_and_not_done(project: Project, command: tuple[str, ...], by: list[str]) -> None:
    project.here("work", "issue", "Mend the clock")
    project.here("work", "run", "local#1", "--executor", "fail")
    before = project.here("work", "show", "local#1", "--json").out
    staged = project.here("work", *command, "--staged", "--json")
    assert [write["by"] for write in staged.json] == by
    assert project.here("work", "show", "local#1", "--json").out == before
    assert "nothing was written" in project.here("work", *command, "--staged").err


def test_a_result_and_a_switch_are_staged_with_their_comments(project: Project, repository: Path) -> None:
    project.here("work", "issue", "Mend the clock")
    project.here("work", "run", "local#1", "--executor", "manual")
    result = project.here("work", "result", "local#1", "--commit", "4f2c1d9", "--tests", "make => pass", "--staged")
    assert "the state is review" in result.out
    assert "+Commit: 4f2c1d9" in result.out.replace("- Commit", "Commit")
    switch = project.here("work", "switch", "local#1", "--executor", "mend", "--reason", "timeout", "--staged")
    assert "is fenced: timeout" in switch.out
    assert "Takes the place of" in switch.out
    assert "mend" not in project.here("work", "show", "local#1").out
    (repository / "workflow.toml").unlink()
    assert "would write workflow.toml" in project.here("work", "init", "--staged").out
    assert not (repository / "workflow.toml").exists()


def test_what_opening_an_issue_asks_is_asked_at_the_terminal(project: Project, repository: Path) -> None:
    settings = repository / "remit.toml"
    settings.write_text(settings.read_text().replace(RULES, ""))
    with project.terminal("work", "issue", "Mend the clock") as terminal:
        terminal.expect("outbox.create")
        terminal.expect(r"or later\? ")
        terminal.type("y\r")
        terminal.expect("local#1")
        assert terminal.end() == exit_codes.OK


def test_a_run_begins_only_where_there_is_something_to_begin_at(project: Project, repository: Path) -> None:
    project.here("work", "issue", "Mend the clock")
    git(repository, "checkout", "--quiet", "--orphan", "empty")
    refused = project.here("work", "run", "local#1", "--executor", "mend")
    assert (refused.status, "no commit to begin at" in refused.err) == (exit_codes.USAGE, True)
    assert not project.here("work", "show", "local#1", "--json").json["runs"]


@pytest.mark.parametrize(
    "words", [("switch", "local#1", "--executor", "mend", "--reason", "died"), ("stop", "local#1")]
)
def test_the_run_of_a_killed_process_is_taken_over_at_once(
    project: Project, repository: Path, words: tuple[str, ...]
) -> None:
    project.here("work", "issue", "Mend the clock")
    running = project.start("work", "run", "local#1", "--executor", "hang")
    survivor = int((repository / "up").read_text())  # once the program of the run lives
    running.kill()
    running.communicate(timeout=PATIENCE_S)
    assert project.here("work", *words).status == exit_codes.OK
    with pytest.raises(ProcessLookupError):
        os.kill(survivor, 0)
    view = project.here("work", "show", "local#1", "--json").json
    jobs = {row["job"]: row["state"] for row in project.here("jobs", "--json").json}
    assert [jobs[run["job"]] for run in reversed(view["runs"])] == ["cancelled", "completed"][: len(view["runs"])]
    assert view["active"] == ""
