from __future__ import annotations

import shutil
import subprocess

import pytest

from remit.cli.root import COMMANDS
from tests.cli.conftest import Project

SHELLS = ("bash", "zsh", "fish")


def offered(project: Project, *words: str) -> list[str]:
    """What bash is offered for the last of some words."""
    project.env |= {
        "_REMIT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("remit", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = project.here()
    assert (done.status, done.err) == (0, "")
    return [line for line in done.out.splitlines() if line]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_a_script_that_calls_remit(project: Project, shell: str) -> None:
    done = project.here("completion", shell)
    assert done.status == 0
    assert f"_REMIT_COMPLETE={shell}_complete" in done.out
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=done.out, text=True, capture_output=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_commands_and_options_are_offered(project: Project) -> None:
    assert offered(project, "") == [f"plain,{name}" for name in COMMANDS]
    assert offered(project, "po") == ["plain,policy"]
    assert offered(project, "policy", "ex") == ["plain,explain"]
    assert "plain,--state" in offered(project, "jobs", "--s")


def test_jobs_questions_recipes_and_tools_are_offered(project: Project) -> None:
    job = project.job("notes", "--path", "n.txt")
    (question,) = project.here("confirm", "--json").json
    project.here("tools")
    assert offered(project, "show", "") == ["plain,last", f"plain,{job}"]
    assert offered(project, "confirm", "") == ["plain,show", f"plain,{question['confirmation']}"]
    assert offered(project, "confirm", "show", "") == [f"plain,{question['confirmation']}"]
    assert offered(project, "confirm", "c_") == [f"plain,{question['confirmation']}"]
    assert offered(project, "run", "no") == ["plain,notes"]
    assert offered(project, "run", "plans/a") == ["file,plans/a"]
    assert offered(project, "tools", "note.") == ["plain,note.read", "plain,note.write"]


def test_parameters_steps_and_plans_are_offered(project: Project) -> None:
    job = project.job("notes", "--path", "n.txt")
    project.here("tools")
    assert offered(project, "run", "greet", "--") == [
        *offered(project, "run", "unknown", "--"),
        *(f"plain,--{name}" for name in ("name", "times", "loud", "tags")),
    ]
    assert offered(project, "run", "greet", "--name", "x", "--ti")[-1] == "plain,--times"
    assert offered(project, "show", job, "") == ["plain,1"]
    assert offered(project, "decide", job, "") == ["plain,1"]
    (project.folder / "note.yaml").write_text("{}", encoding="utf-8")
    assert offered(project, "run", "note") == ["plain,notes", "plain,note.yaml"]


def test_what_cannot_be_looked_up_offers_nothing(project: Project) -> None:
    project.configure("[jobs]\nnope = 1\n")
    assert offered(project, "show", "") == []


def test_without_a_shell_the_choices_are_named_on_one_line(project: Project) -> None:
    done = project.here("completion")
    assert done.status == 2
    assert "Choose from: bash, zsh, fish" in done.err
