"""`remit replay --until`: a Python prompt in the recipe, at a real pseudo-terminal."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Project

ALLOWED = """
[[policy.rules]]
id = "notes"
effect = "allow"
tools = ["note.*"]
"""


@pytest.fixture
def job(project: Project) -> str:
    """A job that has written a note."""
    project.configure(ALLOWED)
    ran = project.here("run", "notes", "--path", "n.txt", "--json")
    assert ran.status == 0, ran.err
    return str(ran.json["job"])


@pytest.mark.slow
def test_a_prompt_shows_the_recipes_variables_and_calls_nothing(project: Project, job: str) -> None:
    before = project.here("trace", job, "--json").out
    (project.folder / "n.txt").unlink()
    with project.terminal("replay", job, "--until", "1", columns=200) as screen:
        screen.expect(r"step 1: a tool call, in notes \(.*sample_module.py:\d+\)")
        screen.expect(r"variables: path, run, text")
        for typed, said in (
            ("path + '/' + text\r", r"'n.txt/hello'"),
            ('await run.call("note.write", {"path": path})\r', r"USAGE: nothing is called or recorded where a replay"),
            ("import asyncio; await asyncio.sleep(1)\r", r"USAGE: nothing is waited for"),
            ("1 / 0\r", r"ZeroDivisionError: .*"),
            ("text = 'other'; print(len(text) + 95)\r", r"^100"),
        ):
            screen.expect(r">>> ")
            screen.type(typed)
            screen.expect(said)
        screen.expect(r">>> ")
        screen.type("tex\t")
        screen.expect(r"text")  # completed: the prompt reads keys now, and Ctrl-D is one of them
        screen.type("\x15\x04")
        screen.expect(r"same: the current code follows the record; 1 recorded step returned")
        assert screen.end() == 0
    assert not (project.folder / "n.txt").exists()
    assert project.here("trace", job, "--json").out == before


@pytest.mark.slow
def test_ctrl_c_ends_what_was_typed_and_not_the_replay(project: Project, job: str) -> None:
    with project.terminal("replay", job, "--until", "1") as screen:
        screen.expect(r">>> ")
        screen.type("while print('turn') is None: sum(range(1_000_000))\r")
        screen.expect(r"^\.\.\. ")
        screen.type("\r")
        screen.expect(r"^turn\r?$")
        screen.type("\x03")
        screen.expect(r"KeyboardInterrupt")
        screen.expect(r">>> ")
        screen.type("exit()\r")
        screen.expect(r"same: ")
        assert screen.end() == 0


@pytest.mark.slow
def test_exit_goes_on_and_a_step_that_is_not_there_has_a_code(project: Project, job: str) -> None:
    with project.terminal("replay", job, "--until", "1") as screen:
        screen.expect(r">>> ")
        screen.type("exit()\r")
        screen.expect(r"same: ")
        assert screen.end() == 0
    with project.terminal("replay", job, "--until", "9") as screen:
        screen.expect(r"STEP_NOT_FOUND")
        assert screen.end() == 2


def test_without_a_terminal_there_is_no_prompt(project: Project, job: str) -> None:
    ran = project.here("replay", job, "--until", "1", "--json")
    assert (ran.status, ran.error["code"]) == (2, "USAGE")


@pytest.mark.parametrize("words", [("--all",), ("last", "--live", "L0"), ()])
def test_until_is_for_one_replay_that_calls_nothing(project: Project, words: tuple[str, ...]) -> None:
    assert project.here("replay", *words, "--until", "1").status == 2
