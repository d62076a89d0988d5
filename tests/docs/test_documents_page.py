"""docs/documents.md: its example runs at a terminal, and its tables name what there is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from remit.parts.documents import package
from remit.parts.documents.provider import TOOLS
from tests.cli.conftest import Project, project

__all__ = ["project"]

PAGE = (Path(__file__).parents[2] / "docs/documents.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_tool_is_listed_with_its_level_and_arguments_and_no_other() -> None:
    rows = re.findall(r"^\| `(doc\.\w+)` \| (L\d) \| (.*?) \|", PAGE, re.MULTILINE)
    assert [(name, level, set(re.findall(r"`(\w+)`", takes))) for name, level, takes in rows] == [
        (meta.name, meta.capability_level.name, set((meta.input_schema or {})["properties"])) for meta in TOOLS
    ]


def test_the_limits_of_the_page_are_those_in_force() -> None:
    assert f"{package._UNPACKED // 1024**2} MB, has more than {package._ELEMENTS:,} elements" in PAGE


@pytest.mark.slow
def test_the_example_is_what_a_person_sees_and_the_edit_can_be_undone(project: Project) -> None:
    made, run = [shlex.split(line) for line in re.findall(r"^\$ (.*)$", EXAMPLE, re.MULTILINE)]
    plan = project.folder / "plan.md"
    plan.write_text(made[1].encode().decode("unicode_escape"), encoding="utf-8")
    before = plan.read_text(encoding="utf-8")
    with project.terminal(*run[1:]) as screen:
        screen.expect(r"A call waits for approval")
        for line in ("Edits plan.md: 3 lines now, 3 lines afterwards.", "-  The rent is 900", r"\+  The rent is 950"):
            screen.expect(re.escape(line) if line.startswith("E") else line)
        screen.expect("approve, deny, edit or later")
        screen.type("a\r")
        screen.expect("approved")
        assert screen.end() == 0
    assert plan.read_text(encoding="utf-8") == before.replace("900", "950")
    (result,) = (one["result"]["files"][0] for one in [project.here("show", "last", "--json").json])
    args = {"path": "plan.md", "sha256": result["sha256"], "back_to": result["sha256_before"]}
    call = ["api", "tools.execute", "tool_name=doc__undo_edit", f"args={json.dumps(args)}"]
    asked = json.loads(project.here(*call).out)
    assert asked["code"] == "CONFIRMATION_REQUIRED"
    assert "+The rent is 900 euros." in project.here("confirm", asked["confirmation"]).out.replace("+  ", "+")
