"""What a person at a terminal sees and can do: real pseudo-terminals, real keys."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Project

pytestmark = pytest.mark.slow

QUESTION = r"approve, deny, edit or later\? "
CTRL_C = "\x03"
CTRL_D = "\x04"


def test_progress_is_drawn_in_place_and_the_result_comes_after_it(project: Project) -> None:
    with project.terminal("run", "report") as screen:
        screen.expect(r"job job_\w{26}")
        screen.expect(r"✓ report  completed · 1 step")
        screen.expect(r"✓ 1  time")
        screen.expect("# All is well")
        assert screen.end() == 0
        assert "\x1b[2K" in screen.raw, "lines are drawn again, not added"


def test_without_colour_there_is_no_colour(project: Project) -> None:
    with project.terminal("doctor", env={"NO_COLOR": "1"}) as screen:
        assert screen.end() == 0
        assert "\x1b[" not in screen.raw
    with project.terminal("doctor") as screen:
        screen.end()
        assert "\x1b[32mok" in screen.raw


def test_tables_fit_the_terminal_and_keep_ids_whole(project: Project) -> None:
    short = project.job("notes", "--path", "n.txt")
    job = project.job("notes", "--path", "a/very/long/path/" * 10)
    looks = (("jobs",), ("confirm",), ("tools",), ("show", short), ("trace", job), ("config",))
    for columns, words in [(80, words) for words in looks] + [(120, ("jobs",))]:
        with project.terminal(*words, columns=columns, env={"NO_COLOR": "1"}) as screen:
            assert screen.end() == 0
            widest = max(len(line) for line in screen.text.splitlines())
            assert widest <= columns, (columns, words)
            assert (job if words[0] == "trace" else job[-8:]) in screen.text or words[0] in {"tools", "config", "show"}


def test_ctrl_c_leaves_the_job_to_be_resumed_and_says_how(project: Project) -> None:
    with project.terminal("run", "forever") as screen:
        job = screen.expect(r"job (job_\w+)")[1]
        screen.expect("a read is under way")
        screen.expect(r"patience 1/2")
        screen.type(CTRL_C)
        screen.expect(r"forever  stopped")
        screen.expect(rf"resume with: remit resume {job}")
        screen.expect(rf"cancel with: remit cancel {job}")
        assert screen.end() == 130
    assert "stopped" in project.here("jobs").out
    with project.terminal("resume", job) as screen:
        screen.expect("a read is under way")
        screen.type(CTRL_C)
        assert screen.end() == 130
    trace = project.here("trace", job).out
    assert trace.count("taken over by") == 1


def test_ctrl_c_does_not_wait_for_a_thread_that_cannot_be_stopped(project: Project) -> None:
    with project.terminal("run", "blocked") as screen:
        screen.expect("a thread is blocked")
        screen.type(CTRL_C)
        screen.expect("resume with:")
        assert screen.end() == 130


def test_ctrl_c_gives_a_call_with_side_effects_time_to_end(project: Project) -> None:
    os.mkfifo(project.folder / "done")
    with project.terminal("run", "risky", "--done", "done") as screen:
        job = screen.expect(r"job (job_\w+)")[1]
        screen.expect("a write is under way")
        screen.type(CTRL_C)
        screen.expect("a call with side effects is under way; it has 20 s to end")
        (project.folder / "done").write_text("written", encoding="utf-8")
        screen.expect('"written"')
        assert screen.end() == 0, "with that call the job came to its end"
    assert project.here("show", job, "--json").json["row"]["state"] == "completed"


def test_a_second_ctrl_c_gives_it_no_time(project: Project) -> None:
    os.mkfifo(project.folder / "done")
    with project.terminal("run", "risky", "--done", "done") as screen:
        screen.expect("a write is under way")
        screen.type(CTRL_C)
        screen.expect("it has 20 s to end")
        screen.type(CTRL_C)
        screen.expect("whether it happened is unknown")
        screen.expect("resume with:")
        assert screen.end() == 130


# --- questions


def test_an_approval_is_asked_for_and_the_job_goes_on(project: Project) -> None:
    with project.terminal("run", "notes", "--path", "n.txt") as screen:
        screen.expect("A call waits for approval")
        screen.expect(r"tool +note\.write")
        screen.expect(r"level +L1, provider local")
        screen.expect(r"rule +default:L1")
        screen.expect(r'"text": "hello"')
        screen.expect(r"sha256:[0-9a-f]{64}")
        screen.expect(QUESTION)
        screen.type("\r")
        screen.expect(r"l  later")
        screen.expect(QUESTION)
        screen.type("a\r")
        screen.expect("approved")
        screen.expect('"HELLO"')
        assert screen.end() == 0
    assert "approved by alice" in project.here("trace", "last").out


def test_a_file_is_shown_as_the_diff_that_it_is(project: Project) -> None:
    (project.folder / "a.md").write_text("one\ntwo\nthree\n", encoding="utf-8")
    with project.terminal("run", "file", "--path", "a.md", "--content", "one\nsecond\nthree\n") as screen:
        screen.expect(r"Replaces a\.md: 3 lines now, 3 lines afterwards\.")
        screen.expect(r"(?m)^    -  two\n    \+  second\n")
        screen.expect(r'\| {3}"content": \(3 lines, 17 characters\)\n    " one\n    " second\n    " three\n    \| \}')
        screen.expect(r"fs\.write \(L1\): " + QUESTION)
        screen.type("a\r")
        screen.expect('"replaced"')
        assert screen.end() == 0


def test_what_is_longer_than_the_screen_is_shown_in_the_pager_and_again_on_demand(project: Project) -> None:
    pager = project.folder / "pager.sh"
    pager.write_text('#!/bin/sh\necho "paged $(cat >paged; wc -l <paged) lines"\n', encoding="utf-8")
    pager.chmod(0o700)
    content = "".join(f"line {number}\n" for number in range(100))
    with project.terminal("run", "file", "--path", "a.md", "--content", content, env={"PAGER": str(pager)}) as screen:
        lines = int(screen.expect(r"paged (\d+) lines")[1])
        screen.expect("A call waits for approval")
        screen.expect(rf"{lines} lines, shown in the pager; `s` shows them again")
        screen.expect(QUESTION)
        assert "line 99" not in screen.text, "it is in the pager, not on the screen as well"
        paged = (project.folder / "paged").read_text(encoding="utf-8")
        assert all(f'" line {number}\n' in paged for number in range(100))
        screen.type("s\r")
        screen.expect(rf"paged {lines} lines")
        screen.expect(QUESTION)
        screen.type("l\r")
        assert screen.end() == 4


@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager", "'", "false"])
def test_without_a_pager_that_works_everything_is_on_the_screen(project: Project, pager: str) -> None:
    content = "".join(f"line {number}\n" for number in range(100))
    with project.terminal("run", "file", "--path", "a.md", "--content", content, env={"PAGER": pager}) as screen:
        screen.expect('" line 0\n')
        screen.expect('" line 99\n')
        screen.expect(QUESTION)
        screen.type("l\r")
        assert screen.end() == 4


def test_a_question_answered_elsewhere_ends_the_pager(project: Project) -> None:
    content = "".join(f"line {number}\n" for number in range(100))
    with project.terminal("run", "file", "--path", "a.md", "--content", content, env={"PAGER": "less"}) as screen:
        screen.expect("line 3")
        (question,) = project.here("confirm", "--json").json
        assert project.here("confirm", question["confirmation"], "--approve", "--as", "bob").status == 0
        screen.expect("was answered elsewhere")
        screen.expect('"created"')
        assert screen.end() == 0


def test_one_key_also_allows_what_comes_after_it_in_the_job(project: Project) -> None:
    with project.terminal("run", "two_notes", "--path", "n") as screen:
        screen.expect(r"j +approve, and run note\.write in this job without asking for 8 h, whatever its arguments")
        screen.expect(QUESTION)
        screen.type("j\r")
        screen.expect("approved")
        rule = screen.expect(r"note\.write runs in this job .* end that with: remit policy revoke (\w+)")[1]
        screen.expect(r'\[\s*"ok",\s*"ok"\s*\]')
        assert screen.end() == 0
        assert screen.text.count("A call waits for approval") == 1
    (kept,) = project.here("policy", "rules", "--json").json["remembered"]
    assert (kept["id"], kept["scope"], kept["args_digest"]) == (rule, "job", None)
    assert project.here("run", "notes", "--path", "n", "--json").status == 4, "another job asks again"


def test_one_key_allows_a_tool_everywhere(project: Project) -> None:
    with project.terminal("run", "notes", "--path", "n") as screen:
        screen.expect(QUESTION)
        screen.type("8\r")
        screen.expect(r"note\.write runs everywhere without asking until ")
        assert screen.end() == 0
    assert project.here("run", "notes", "--path", "other").status == 0


def test_a_denial_takes_a_reason(project: Project) -> None:
    with project.terminal("run", "notes", "--path", "n.txt") as screen:
        screen.expect(QUESTION)
        screen.type("deny\r")
        screen.expect("reason")
        screen.type("no, not there\r")
        screen.expect("denied")
        screen.expect("CONFIRMATION_DENIED")
        assert screen.end() == 3
    assert "no, not there" in project.here("show", "last").err


def test_arguments_are_edited_and_asked_about_again(project: Project) -> None:
    editor = write_editor(project.folder, "s/hello/goodbye/")
    with project.terminal("run", "notes", "--path", "n.txt", env={"EDITOR": str(editor)}) as screen:
        first = screen.expect(r"sha256:[0-9a-f]{64}")[0]
        screen.expect(QUESTION)
        screen.type("e\r")
        screen.expect("edited from +c_")
        screen.expect(r'"text": "goodbye"')
        assert screen.expect(r"sha256:[0-9a-f]{64}")[0] != first
        screen.expect(QUESTION)
        screen.type("approve\r")
        screen.expect('"GOODBYE"')
        assert screen.end() == 0


@pytest.mark.parametrize(
    ("script", "said"), [("s/x/x/", "nothing changed"), ("s/{//", "that is not JSON"), ("s/hello/5/", None)]
)
def test_an_edit_that_cannot_be_used_asks_again(project: Project, script: str, said: str | None) -> None:
    editor = write_editor(project.folder, script if said else 's/"hello"/5/')
    with project.terminal("run", "notes", "--path", "n.txt", env={"EDITOR": str(editor)}) as screen:
        screen.expect(QUESTION)
        screen.type("e\r")
        screen.expect(said or "INVALID_TOOL_ARGS")
        screen.expect(QUESTION)
        screen.type("later\r")
        assert screen.end() == 4


def test_without_an_editor_arguments_are_typed(project: Project) -> None:
    (project.folder / "bin").mkdir()
    with project.terminal("run", "notes", "--path", "n.txt", env={"PATH": str(project.folder / "bin")}) as screen:
        screen.expect(QUESTION)
        screen.type("e\r")
        screen.expect("no editor is set")
        screen.type('{"path": "n.txt", "text": "typed"}\r')
        screen.expect(r'"text": "typed"')
        screen.expect(QUESTION)
        screen.type("a\r")
        screen.expect('"TYPED"')
        assert screen.end() == 0


@pytest.mark.parametrize("keys", ["later\r", CTRL_D])
def test_a_question_can_be_left_for_later(project: Project, keys: str) -> None:
    with project.terminal("run", "notes", "--path", "n.txt") as screen:
        screen.expect(QUESTION)
        screen.type(keys)
        screen.expect("left for later: remit confirm c_")
        assert screen.end() == 4
    assert len(project.here("confirm", "--json").json) == 1


def test_ctrl_c_at_a_question_leaves_it_open(project: Project) -> None:
    with project.terminal("run", "notes", "--path", "n.txt") as screen:
        screen.expect(QUESTION)
        screen.type(CTRL_C)
        screen.expect("resume with:")
        assert screen.end() == 130
    assert len(project.here("confirm", "--json").json) == 1


def test_several_questions_come_one_after_the_other(project: Project) -> None:
    with project.terminal("run", "two_notes", "--path", "n") as screen:
        screen.expect(QUESTION)
        screen.type("a\r")
        screen.expect("approved")
        screen.expect(QUESTION)
        screen.type("d\r")
        screen.expect("reason")
        screen.type("\r")
        screen.expect(r'"ok"')
        screen.expect(r'"blocked"')
        assert screen.end() == 0


def test_a_question_that_another_process_answers_is_withdrawn(project: Project) -> None:
    with project.terminal("run", "notes", "--path", "n.txt") as screen:
        question = screen.expect(r"A call waits for approval +(c_\w+)")[1]
        screen.expect(QUESTION)
        assert project.here("confirm", question, "--approve", "--as", "bob").status == 0
        screen.expect("was answered elsewhere")
        screen.expect('"HELLO"')
        assert screen.end() == 0


def test_with_wait_a_process_without_a_terminal_waits_for_another(project: Project) -> None:
    with project.start("run", "notes", "--path", "n.txt", "--wait") as process:
        assert process.stderr is not None
        for line in process.stderr:
            found = re.search(r"waits for confirmation (c_\w+)", line)
            if found:
                assert project.here("confirm", found[1], "--approve").status == 0
        assert process.stdout is not None
        assert process.stdout.read() == '"HELLO"\n'
    assert process.returncode == 0


def test_json_asks_nothing_even_at_a_terminal(project: Project) -> None:
    with project.terminal("run", "notes", "--path", "n.txt", "--json") as screen:
        screen.expect(r'"state":"waiting"')
        assert screen.end() == 4


def test_confirm_with_an_id_asks_at_a_terminal(project: Project) -> None:
    job = project.job("notes", "--path", "n.txt")
    (question,) = project.here("confirm", "--json").json
    with project.terminal("confirm", "show", question["confirmation"]) as screen:
        screen.expect("--approve | --deny")
        assert screen.end() == 0, "nothing was asked"
    with project.terminal("confirm", question["confirmation"]) as screen:
        screen.expect(QUESTION)
        screen.type("a\r")
        screen.expect(rf"remit resume {job}")
        assert screen.end() == 0
    assert project.here("resume", job).status == 0


def test_a_question_of_a_recipe_has_no_arguments_to_edit(project: Project) -> None:
    with project.terminal("run", "asks") as screen:
        screen.expect("A job asks")
        screen.expect("Shall we go on")
        screen.expect(r"approve, deny or later\? ")
        screen.type("e\r")
        screen.expect(r"approve, deny or later\? ")
        screen.type("yes\r")
        screen.expect(r'"approved": true')
        assert screen.end() == 0


def test_what_was_typed_before_the_question_does_not_answer_it(project: Project) -> None:
    with project.terminal("run", "notes", "--path", "n.txt") as screen:
        screen.expect("job job_")
        screen.type("approve\r")
        screen.expect(QUESTION)
        screen.type("show\r")
        screen.expect("A call waits for approval")
        screen.expect(QUESTION)
        screen.type("later\r")
        assert screen.end() == 4
    assert len(project.here("confirm", "--json").json) == 1


def write_editor(folder: Path, script: str) -> Path:
    path = folder / "editor.sh"
    path.write_text(f"#!/bin/sh\nsed -i '{script}' \"$1\"\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
