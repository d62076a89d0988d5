"""docs/skills.md: what it shows is what happens, and its tables name what there is."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import msgspec
import pytest

from remit.parts.skills.folder import SkillPlace
from remit.parts.skills.settings import Word
from remit.parts.work.workflow import Workflow
from tests.cli.conftest import Project, project

__all__ = ["project"]

PAGE = (Path(__file__).parents[2] / "docs/skills.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_key_of_the_operators_word_is_listed() -> None:
    section = PAGE.partition("## The operator's word")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(Word.__struct_fields__)


@pytest.mark.slow
def test_the_example_is_what_a_person_does(project: Project) -> None:
    folder, (markdown,), (seed,) = project.folder, blocks("markdown"), blocks("yaml")
    new, *others = [
        shlex.split(line)[1:] for text in blocks("console") for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE)
    ]
    toml, word, workflow = blocks("toml")
    made = project.here(*new)
    assert made.out.strip() in blocks("console")[0]
    (folder / made.out.strip()).write_text(markdown, encoding="utf-8")
    (folder / "skills/release-notes/references").mkdir()
    (folder / "skills/release-notes/references/style.md").write_text("Short sentences.")
    (folder / "skills/triage.yaml").write_text(seed, encoding="utf-8")
    (folder / "CHANGES.md").write_text("- a new colour\n")
    (folder / "remit.toml").write_text(toml + '[fs]\nroots = ["."]\n', encoding="utf-8")
    steps = [
        {"call": [{"tool": "skill.read", "args": {"name": "release-notes"}}]},
        {"call": [{"tool": "fs.read", "args": {"path": "CHANGES.md"}}, {"tool": "fs.write", "args": {"path": "x"}}]},
        {"expect": "a new colour", "say": "There is a new colour."},
    ]
    (folder / "script.yaml").write_text(json.dumps(steps))
    done = [project.here(*words) for words in others]
    assert [one.status for one in done] == [0] * len(others), done
    assert "There is a new colour." in done[-1].out
    steps_of = [step["name"] for step in project.here("show", "last", "--json").json["steps"]]
    assert {"tool.skill.read", "tool.fs.read"} <= {*steps_of}
    assert "release-notes" in project.here("show", "last", "--json").json["skills"]
    assert SkillPlace(folder / "skills", "triage.yaml", is_folder=False).manifest().risk == "ask"
    assert msgspec.convert(tomllib.loads(workflow), Workflow).executors["claude"].skills == ("release-notes",)
    assert set(tomllib.loads(word)["skills"]["release-notes"]) <= set(Word.__struct_fields__)
