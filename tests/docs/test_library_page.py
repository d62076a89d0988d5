"""docs/library.md names everything that is public, and its programs are files that run."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import Options, Remit
from remit.errors import SettingsError
from tests.parts.adapters.environment import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "examples").rglob("*.py")}
CELLS = [
    "".join(cell["source"]) for cell in json.loads((ROOT / "examples/python/notebook.ipynb").read_bytes())["cells"]
]
DRIVE = """
import sys

sys.path.insert(0, sys.argv[1])
from app import app
from fastapi.testclient import TestClient

with TestClient(app) as client:
    job = client.post("/refunds?user=ann", json={"customer": "ada", "cents": 700}).json()["job"]
    while not (shown := client.get(f"/refunds/{job}").json())["questions"]:
        pass
    question = shown["questions"][0]
    given = {"digest": question["digest"], "approve": True}
    print(client.post(f"/questions/{question['id']}?user=grace", json=given).json()["state"])
    while (shown := client.get(f"/refunds/{job}").json())["state"] != "completed":
        pass
    print(shown, client.get("/refunds/job_unknown").status_code)
"""


def rows(title: str) -> set[str]:
    """The names in the first cells of a section's tables."""
    section = PAGE.partition(f"# {title}\n")[2].partition("\n#")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_every_public_name_is_on_the_page_and_no_other() -> None:
    assert rows("Every name") == set(remit.__all__)


def test_every_parameter_of_remit_and_every_option_is_listed() -> None:
    assert rows("Open it") == set(inspect.signature(Remit).parameters)
    assert rows("Options") == set(Options.__struct_fields__) - {"schedule"}  # which a schedule sets itself


def test_every_program_of_the_page_stands_in_a_file_that_runs() -> None:
    opened, settings, *others = BLOCKS
    assert [block for block in others if not any(block.strip() in text for text in [*FILES.values(), *CELLS])] == []
    assert [line for line in settings.splitlines() if line not in CELLS[0]] == []
    compile(opened, "library.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


async def test_the_notebook_runs_cell_by_cell() -> None:
    space: dict[str, Any] = {"__name__": "notebook"}
    for cell in CELLS:
        code = compile(cell, "notebook", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, space)  # noqa: S307 - our own notebook
        if inspect.iscoroutine(result):
            await result
    assert (space["counts"], space["verdict"]) == ([2, 1], "same")


@pytest.mark.slow
async def test_the_web_application_begins_a_job_and_takes_the_answer(tmp_path: Path) -> None:
    program = tmp_path / "drive.py"
    program.write_text(DRIVE, encoding="utf-8")
    ran = await run("adapters", program, tmp_path, "http://127.0.0.1:9", str(ROOT / "examples/fastapi"))
    assert ran.out.splitlines() == ["approved", "{'state': 'completed', 'questions': []} 404"]


def test_settings_that_are_a_mapping_are_refused_with_the_remedy() -> None:
    with pytest.raises(SettingsError) as refused:
        Remit(settings={"models": {}})  # type: ignore[arg-type]
    assert "remit.settings.load" in refused.value.remedy
