from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from remit.journal.journal import Journal
from tests.cli.conftest import Project


def test_the_result_goes_to_stdout_and_everything_else_to_stderr(project: Project) -> None:
    done = project.here("run", "greet", "--name", "Ada")
    assert done.status == 0
    assert json.loads(done.out) == {"greeting": "Hello Ada", "loud": False, "tags": []}
    assert done.err.startswith("job job_")
    assert "1 uuid ok" in done.err


def test_a_result_with_a_report_is_printed_as_that_text(project: Project) -> None:
    assert project.here("run", "report").out == "# All is well\n\nNothing to see.\n"


def test_json_is_one_object_and_nothing_else(project: Project) -> None:
    done = project.here("run", "greet", "--name", "Ada", "--json")
    assert done.json["state"] == "completed"
    assert done.json["result"]["greeting"] == "Hello Ada"
    assert done.json["job"].startswith("job_")
    (told,) = re.findall(r"Print JSON: (\w+), (\w+), and (\w+) or\s+(\w+)", project.here("run", "--help").out)
    assert set(told) <= set(done.json)
    assert done.err == ""
    assert done.out.count("\n") == 1


def test_what_recipes_tools_and_their_children_print_stays_out_of_stdout(project: Project) -> None:
    done = project.apart("run", "chatty", "--json")
    assert done.json["result"] == 7
    assert [line for line in done.err.splitlines() if line] == [
        "printed by a recipe",
        "printed by a tool",
        "printed by a child",
    ]


def test_quiet_leaves_the_result_alone(project: Project) -> None:
    done = project.here("-q", "run", "report")
    assert done.out
    assert done.err == ""


def test_parameters_are_options_of_their_own_types(project: Project) -> None:
    done = project.here("run", "greet", "--name=Ada", "--times", "2", "--loud", "--tags", "a", "--tags", "b", "--json")
    assert done.json["result"] == {"greeting": "Hello AdaHello Ada", "loud": True, "tags": ["a", "b"]}


def test_input_gives_parameters_as_json_and_options_win(project: Project) -> None:
    (project.folder / "in.json").write_text('{"name": "Bob", "times": 3}', encoding="utf-8")
    done = project.here("run", "greet", "--input", "@in.json", "--name", "Eve", "--json")
    assert done.json["result"]["greeting"] == "Hello Eve" * 3
    piped = project.here("run", "greet", "--input", "@-", "--json", stdin='{"name": "Pia"}')
    assert piped.json["result"]["greeting"] == "Hello Pia"


def test_input_that_is_not_utf_8_is_refused(project: Project) -> None:
    done = project.here("run", "greet", "--input", "@-", stdin="caf\udce9")
    assert (done.status, "it is not UTF-8" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("greet", "--nme", "x"), "INVALID_INPUT", "Did you mean --name?"),
        (("greet", "--name"), "INVALID_INPUT", "needs a value"),
        (("greet", "Ada"), "INVALID_INPUT", "belongs to no option"),
        (("greet",), "INVALID_INPUT", "name"),
        (("greet", "--name", "x", "--times", "many"), "INVALID_INPUT", "times"),
        (("greet", "--input", "{"), "INVALID_INPUT", "--input is not JSON"),
        (("greet", "--input", "[]"), "INVALID_INPUT", "not a JSON object"),
        (("greet", "--input", "@nowhere"), "INVALID_INPUT", "cannot be read"),
        (("greet", "--name", "x", "--label", "oops"), "USAGE", "not a label"),
        (("great",), "UNKNOWN_RECIPE", "Did you mean greet?"),
    ],
)
def test_a_wrong_command_line_says_what_to_write_and_records_nothing(
    project: Project, words: tuple[str, ...], code: str, said: str
) -> None:
    done = project.here("run", *words)
    assert (done.status, done.out) == (2, "")
    assert code in done.err
    assert said in done.err
    assert project.here("jobs", "--json").json == []


def test_an_unknown_option_lists_the_parameters(project: Project) -> None:
    error = project.here("run", "greet", "--nope", "1", "--json").error
    assert all(name in error["remedy"] for name in ("name", "times", "loud", "tags"))


def test_a_failed_job_exits_with_3_and_says_why(project: Project) -> None:
    done = project.here("run", "fails")
    assert done.status == 3
    assert "error: TOOL_EXEC_FAILED" in done.err
    assert "no luck today" in done.err
    shown = project.here("run", "fails", "--json")
    assert shown.status == 3
    assert shown.json["state"] == "failed"
    assert shown.json["error"]["code"] == "TOOL_EXEC_FAILED"
    assert shown.json["error"]["step"] == "1"


def test_a_job_that_waits_for_approval_exits_with_4_and_says_how_to_go_on(project: Project) -> None:
    done = project.here("run", "notes", "--path", "n.txt")
    job = done.err.split()[1]
    (question,) = project.here("confirm", "--json").json
    assert done.status == 4
    assert f"-> remit confirm {question['confirmation']}" in done.err
    assert f"remit resume {job}" in done.err


def test_hints_repeat_the_options_that_lead_to_the_same_journal(project: Project) -> None:
    done = project.here("--journal", "my jobs.db", "run", "waits")
    assert "-> remit --journal 'my jobs.db' signal job_" in done.err
    assert "go [PAYLOAD]" in done.err


def test_waiting_as_json_tells_what_for(project: Project) -> None:
    done = project.here("run", "waits", "--json")
    assert done.status == 4
    assert done.json["state"] == "waiting"
    assert done.json["waits"][0]["type"] == "signal"
    assert done.json["waits"][0]["key"] == "go"


def test_a_timer_is_waited_for(project: Project) -> None:
    done = project.here("run", "naps", "--json")
    assert (done.status, done.json["result"]) == (0, "rested")


def test_title_labels_and_priority_are_kept(project: Project) -> None:
    options = ("--title", "my title", "--label", "team=a", "--label", "env=b", "--priority", "3")
    job = project.job("greet", "--name", "x", *options)
    row = project.here("show", job, "--json").json["row"]
    assert row["title"] == "my title"
    assert row["labels"] == {"team": "a", "env": "b"}


@pytest.mark.parametrize("untrusted", [True, False])
def test_input_is_untrusted_where_the_option_says_so(project: Project, untrusted: bool) -> None:
    job = project.job("greet", "--name", "x", *(["--untrusted"] if untrusted else []))
    lines = project.here("trace", job, "--events", "--json").out.splitlines()
    (created,) = [one for one in map(json.loads, lines) if one["kind"] == "job_created"]
    assert created["data"].get("input_untrusted", False) is untrusted


def test_detach_leaves_the_job_to_others_and_prints_its_id(project: Project) -> None:
    done = project.here("run", "greet", "--name", "x", "--detach")
    row = project.here("show", done.out.strip(), "--json").json["row"]
    assert (done.status, row["state"]) == (0, "pending")
    assert project.here("run", "greet", "--name", "x", "--detach", "--json").json["state"] == "pending"


def test_a_job_that_was_recorded_as_ctrl_c_came_is_not_told_as_never_started(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Journal.create

    async def interrupted(self: Journal, *given: Any, **more: Any) -> None:
        await create(self, *given, **more)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    monkeypatch.setattr(Journal, "create", interrupted)
    done = project.here("run", "waits")
    monkeypatch.undo()
    (row,) = project.here("jobs", "--json").json
    assert (done.status, row["state"]) == (130, "pending")
    assert f"resume with: remit resume {row['job']}" in done.err


def test_help_of_a_recipe_shows_what_it_says_of_itself_and_its_parameters(project: Project) -> None:
    done = project.here("run", "greet", "--help")
    assert done.status == 0
    assert "Say hello." in done.out
    assert "Calls nothing." in done.out
    assert "--name str" in done.out
    assert "required" in done.out
    assert "default: 1" in done.out
    assert not (project.folder / ".remit").exists(), "a look at the help makes no journal"


def test_a_plan_runs_with_its_inputs(project: Project) -> None:
    (project.folder / "a.txt").write_text("one line", encoding="utf-8")
    write_plan(project.folder)
    done = project.here("run", "plan.yaml", "--file", "a.txt", "--json")
    assert (done.status, done.json["result"]) == (0, {"text": "one line"})


def test_help_of_a_plan_lists_its_inputs(project: Project) -> None:
    write_plan(project.folder)
    done = project.here("run", "plan.yaml", "--help")
    assert "Reads a note." in done.out
    assert "--file string" in done.out
    assert "Which one" in done.out


def test_every_problem_of_a_plan_is_printed_with_its_place_and_nothing_is_recorded(project: Project) -> None:
    nodes = "  - id: a\n    tool: note.reed\n  - id: b\n    tool: note.read\n    argz: {}\n"
    text = f"version: taskgraph-v1\nname: p\nnodes:\n{nodes}"
    (project.folder / "bad.yaml").write_text(text, encoding="utf-8")
    done = project.here("run", "bad.yaml")
    assert done.status == 2
    assert "bad.yaml:5:" in done.err
    assert "bad.yaml:8:" in done.err
    assert "note.read" in done.err
    assert project.here("jobs", "--json").json == []


@pytest.mark.parametrize("words", [("--nope", "1"), ("--file",), ()])
def test_wrong_inputs_of_a_plan_are_refused(project: Project, words: tuple[str, ...]) -> None:
    write_plan(project.folder)
    done = project.here("run", "plan.yaml", *words)
    assert done.status == 2
    assert "INVALID_INPUT" in done.err


def test_a_broken_module_is_named(project: Project) -> None:
    (project.folder / "broken.py").write_text("1 / 0", encoding="utf-8")
    project.configure('[app]\nmodules = ["broken.py"]\n', modules=False)
    done = project.here("run", "greet", "--name", "x")
    assert done.status == 2
    assert "MODULE_UNLOADABLE" in done.err
    assert "ZeroDivisionError" in done.err


def write_plan(folder: Path) -> None:
    text = """\
version: taskgraph-v1
name: reader
description: Reads a note.
inputs:
  file: {type: string, description: Which one}
nodes:
  - id: read
    tool: note.read
    args: {path: "${inputs.file}"}
output: {text: "${read.value}"}
"""
    (folder / "plan.yaml").write_text(text, encoding="utf-8")


NARROW = """
[policy.groups]
writers = ["note.write"]

[[policy.rules]]
effect = "allow"
"""
ONLY_OK = """
[[policy.rules]]
id = "only-ok"
effect = "deny"
tools = ["@writers"]
unless = { path = { glob = "ok*.txt" } }
"""


def test_a_job_may_be_given_stricter_rules(project: Project) -> None:
    project.configure(NARROW)
    (project.folder / "job.toml").write_text(ONLY_OK, encoding="utf-8")
    done = project.here("run", "notes", "--path", "other.txt", "--policy", "job.toml", "--json")
    assert done.json["error"]["code"] == "POLICY_DENIED"
    assert not (project.folder / "other.txt").exists()
    assert (
        project.here("run", "notes", "--path", "ok1.txt", "--policy", "job.toml", "--json").json["state"] == "completed"
    )
    shown = project.here("show", "last", "--json")
    assert shown.json["state"] == "completed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[policy.rules]]\neffect = "allow"\n', "allows, but rules that a job adds can only restrict"),
        ("[[policy.rules]]\neffect = 'deny'\ntools = ['@nobody']\n", "names the group '@nobody'"),
        ("[policy]\n", "holds no [[policy.rules]]"),
        ("[[policy.rules\n", "job.toml"),
        (None, "is not a file"),
    ],
)
def test_rules_that_cannot_be_a_job_s_are_refused_before_it_starts(
    project: Project, text: str | None, said: str
) -> None:
    if text is not None:
        (project.folder / "job.toml").write_text(text, encoding="utf-8")
    done = project.here("run", "notes", "--path", "a.txt", "--policy", "job.toml")
    assert (done.status, said in done.err) == (2, True), done.err
    assert project.here("jobs", "--json").json == []
