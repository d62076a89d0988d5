"""What a question shows at a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from remit.cli.question import show_question
from tests.cli.conftest import Project
from tests.cli.test_prompt import question
from tests.cli.test_text import Screen


@pytest.mark.parametrize(
    ("defaults", "shown"),
    [
        ({"/mode": "a\u202eb"}, ["  defaults of the tool, for what is left out", "    | {",
                                 '    |   "/mode": "a\\u202eb"', "    | }"]),
        ({}, []),
        (None, ["  defaults: not known here (the tool is not loaded, or is another one by now)"]),
    ],
)  # fmt: skip
def test_defaults_stand_below_the_arguments(defaults: Any, shown: list[str]) -> None:
    screen = Screen(80)
    show_question(screen, question(defaults=defaults), now=0)
    ends = screen.lines.index("  digest of all this")
    assert screen.lines[screen.lines.index("    | }") + 1 : ends] == shown


def test_a_question_of_a_recipe_has_no_defaults() -> None:
    screen = Screen(80)
    show_question(screen, question(tool="", contract_hash="", defaults={}), now=0)
    assert not any("defaults" in line for line in screen.lines)


MORE = """
from remit import Run, recipe, tool

@tool("note.sweep")
def sweep(path: str, recursive: bool = True, limit: int = 100) -> str:
    \"\"\"Sweep.\"\"\"
    return path

@recipe("sweeping")
async def sweeping(run: Run) -> None:
    \"\"\"Sweep.\"\"\"
    await run.call("note.sweep", {"path": "x", "limit": 5})
"""


def test_defaults_of_a_tool_are_shown_where_it_is_known(project: Project) -> None:
    (project.folder / "more.py").write_text(MORE, encoding="utf-8")
    (project.folder / "remit.toml").write_text('[app]\nmodules = ["more.py"]\n', encoding="utf-8")
    project.job("sweeping")
    (catalog,) = project.folder.rglob("catalogs/*.json")
    catalog.rename(catalog.with_suffix(".away"))
    unknown = project.here("confirm", "last", "--json").json
    assert unknown["defaults"] is None
    assert "not known here" in project.here("confirm", unknown["confirmation"]).out
    catalog.with_suffix(".away").rename(catalog)
    known = project.here("confirm", unknown["confirmation"])
    assert '"/recursive": true' in known.out
    assert project.here("confirm", "--json").json[0]["defaults"] == {"/recursive": True}
    (project.folder / "less.py").write_text(MORE.replace("True", "False"), encoding="utf-8")
    (project.folder / "remit.toml").write_text('[app]\nmodules = ["less.py"]\n', encoding="utf-8")
    assert project.here("tools").status == 0
    assert project.here("confirm", "last", "--json").json["defaults"] is None, "it was asked about another contract"


def test_a_question_is_shown_where_the_rules_are_broken(project: Project) -> None:
    project.job("notes", "--path", "n.txt")
    project.configure('[[policy.rules]]\nid = "x"\neffect = "perhaps"\n')
    assert project.here("confirm", "last").status == 0
    assert project.here("confirm", "--json").status == 0
