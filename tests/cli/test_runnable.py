from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Project

RECIPES = """
from remit import Run, recipe

@recipe("first")
async def first(run: Run, word: str, times: int = 2) -> str:
    \"\"\"Repeat a word.\"\"\"
    print("printed by the recipe")
    return word * times
"""
SECOND = """
@recipe("second")
async def second(run: Run) -> str:
    \"\"\"Wait for a signal.\"\"\"
    return await run.wait_signal("go")
"""


def write(project: Project, name: str, text: str) -> None:
    (project.folder / name).write_text(text, encoding="utf-8")


def test_recipes_are_listed_with_their_parameters(project: Project) -> None:
    done = project.here("recipes")
    assert done.status == 0
    (row,) = [line for line in done.out.splitlines() if line.startswith("greet ")]
    assert row.split()[1:4] == ["--name", "[--times]", "[--loud]"]
    assert [one["name"] for one in project.here("recipes", "greet", "--json").json["parameters"]][:2] == [
        "name",
        "times",
    ]
    assert "--times int" in project.here("recipes", "greet").out


def test_an_unknown_recipe_is_refused_with_a_close_name(project: Project) -> None:
    done = project.here("recipes", "gret", "--json")
    assert (done.status, done.error["code"]) == (2, "UNKNOWN_RECIPE")
    assert "greet" in done.error["remedy"]


def test_run_without_a_name_lists_recipes_and_the_plans_here(project: Project) -> None:
    write(project, "plan.yaml", "version: taskgraph-v1\nname: p\nnodes: []\n")
    write(project, "other.yaml", "a: 1\n")
    done = project.here("run")
    assert done.status == 0
    listed = [line.partition(" ")[0] for line in done.out.splitlines()]
    assert listed.index("greet") < listed.index("agent")
    assert not {"ticket_run", "work_run"} & set(listed)
    assert done.out.splitlines()[-2:] == ["PLAN", "plan.yaml"]
    assert project.here("run", "--json").json["plans"] == ["plan.yaml"]


def test_the_tools_of_a_project_are_known_once_it_has_run(project: Project) -> None:
    told = "only built-in tools are known"
    assert told in project.here("policy", "lint").err
    project.here("run", "greet", "--name", "Ann")
    assert told not in project.here("policy", "lint").err
    project.configure(modules=False)
    assert told not in project.here("policy", "lint").err


def test_the_recipe_of_a_file_runs_without_settings_that_name_it(project: Project) -> None:
    write(project, "only.py", RECIPES.replace('"first"', '"only"'))
    done = project.here("run", "only.py", "--word", "ab", "--json")
    assert done.json["result"] == "abab"
    assert "--word str" in project.here("run", "only.py", "--help").out


def test_several_recipes_of_a_file_are_told_apart_by_name(project: Project) -> None:
    write(project, "several.py", RECIPES + SECOND)
    unclear = project.here("run", "several.py", "--json")
    assert (unclear.status, unclear.error["code"]) == (2, "UNKNOWN_RECIPE")
    assert "several.py:first" in unclear.error["remedy"]
    assert project.here("run", "several.py:first", "--word", "a", "--json").json["result"] == "aa"
    assert project.here("run", "several.py:third", "--json").error["remedy"] == "It has: first, second."


def test_a_hint_after_a_job_of_a_file_leads_back_to_the_file(project: Project) -> None:
    write(project, "waits.py", RECIPES.replace('"first"', '"firsts"') + SECOND)
    done = project.here("run", "waits.py:second")
    assert done.status == 4
    assert "remit --module waits.py resume" in done.err
    project.here("signal", "last", "go", '"now"')
    resumed = project.here("--module", "waits.py", "resume", "last", "--json")
    assert resumed.json["result"] == "now"


def test_a_file_without_a_recipe_and_one_that_is_not_there_are_refused(project: Project) -> None:
    write(project, "empty.py", "x = 1\n")
    assert "has no recipe" in project.here("run", "empty.py", "--json").error["message"]
    assert project.here("run", "missing.py", "--json").error["code"] == "MODULE_UNLOADABLE"


@pytest.mark.parametrize(
    ("code", "said", "remedy"),
    [
        ('@tool("Ax")\ndef a() -> int: ...', "'Ax' is not a tool's name", "lower-case letters"),
        ('@tool("a.x", level="L9")\ndef a() -> int: ...', "'L9' is not a level", "Use L0, L1 or L2."),
        ("1 / 0", "ZeroDivisionError", "--module"),
    ],
)
def test_what_is_wrong_in_a_module_says_what_is_right(project: Project, code: str, said: str, remedy: str) -> None:
    write(project, "bad.py", f"from remit import tool\n{code}\n")
    error = project.here("run", "bad.py", "--json").error
    assert error["code"] == "MODULE_UNLOADABLE"
    assert "bad.py:2" in error["message"] or "bad.py:3" in error["message"]
    assert said in error["message"]
    assert remedy in error["remedy"]


def test_hints_are_shown_without_quotes_where_annotations_are_texts(project: Project) -> None:
    write(project, "mine.py", f"from __future__ import annotations\n{RECIPES}")
    error = project.here("run", "mine.py", "--word", "a", "--times", "x", "--json").error
    assert error["message"] == "first: times: Expected `int`, got `str`"
    assert error["remedy"] == "Its parameters are: word: str, times: int = 2."


def test_recipes_of_one_name_are_refused_with_their_places(project: Project) -> None:
    write(project, "one.py", RECIPES)
    write(project, "two.py", RECIPES)
    project.configure('[app]\nmodules = ["one.py", "two.py"]\n', modules=False)
    error = project.here("run", "first", "--word", "a", "--json").error
    assert error["code"] == "NAME_INVALID"
    assert "one.py:4 in first and two.py:4 in first" in error["message"]


def test_a_plan_or_an_input_that_is_not_there_says_so(project: Project) -> None:
    assert project.here("run", "none.yaml", "--json").error["remedy"] == "Check the path."
    assert project.here("run", "greet", "--input", "@none", "--json").error["remedy"] == "Check the path."


def test_a_file_of_an_untrusted_folder_lends_its_trust_to_nothing_else(project: Project) -> None:
    del project.env["REMIT_TRUST"]
    write(project, "mine.py", RECIPES.replace('"first"', '"mine"'))
    done = project.here("run", "mine.py", "--word", "a", "--json")
    assert (done.status, done.error["code"]) == (2, "FOLDER_NOT_TRUSTED")


SLOW = """
from remit import Run, recipe

@recipe("slow")
async def slow(run: Run) -> str:
    \"\"\"Wait for a signal.\"\"\"
    return await run.wait_signal("go")
"""


def test_a_job_of_a_file_goes_on_without_naming_the_file_again(project: Project) -> None:
    write(project, "slow.py", SLOW)
    job = project.job("slow.py")
    assert project.here("show", job, "--json").json["module"] == str(project.folder / "slow.py")
    project.here("signal", job, "go", '"on"')
    assert project.here("replay", job).status == 0
    (replayed,) = project.here("replay", "--all", "--json").json
    assert (replayed["job"], replayed["report"]["verdict"]) == (job, "incomplete")
    done = project.here("resume", job)
    assert (done.status, done.out) == (0, '"on"\n'), done.err


def test_show_says_under_which_code_a_job_ran_if_that_is_not_what_recorded_it(project: Project) -> None:
    write(project, "edited.py", SLOW)
    job = project.job("edited.py")
    assert "ran as" not in project.here("show", job).out
    write(project, "edited.py", SLOW.replace('wait_signal("go")', 'wait_signal("go") + "!"'))
    project.here("signal", job, "go", '"on"')
    assert project.here("resume", job).out == '"on!"\n'
    view = project.here("show", job, "--json").json
    shown = project.here("show", job).out
    assert view["execution_version"] != view["ran_version"]
    assert re.search(rf"^ *ran as +{re.escape(view['ran_version'])}$", shown, re.MULTILINE)


def test_a_file_of_another_folder_is_not_loaded_and_the_command_that_does_is_shown(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("other") / "apart.py"
    file.write_text(SLOW.replace("slow", "apart"), encoding="utf-8")
    job = project.here("run", str(file), "--json").json["job"]
    done = project.here("resume", job)
    assert done.status == 1
    assert "UNKNOWN_RECIPE" in done.err
    assert f"remit --module {file} resume {job}" in done.err
    replayed = project.here("replay", job)
    assert (replayed.status, f"remit --module {file} replay {job}" in replayed.err) == (1, True)


def test_a_journal_that_is_not_the_folders_own_names_no_file_that_is_run(project: Project) -> None:
    write(project, "slow_too.py", SLOW.replace("slow", "slow_too"))
    job = project.here("--journal", "other.db", "run", "slow_too.py", "--json").json["job"]
    done = project.here("--journal", "other.db", "resume", job)
    assert f"remit --journal other.db --module {project.folder}/slow_too.py resume {job}" in done.err


def test_a_mistake_of_syntax_is_placed_in_the_file(project: Project) -> None:
    write(project, "odd.py", "x = 1\ndef (:\n")
    assert "odd.py:2" in project.here("run", "odd.py", "--json").error["message"]
