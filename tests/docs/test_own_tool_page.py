"""docs/own-tool.md shows the program that runs, and its commands do what it says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Project, project

__all__ = ["project"]

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples/python/shop.py"
PAGE = (ROOT / "docs/own-tool.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def shop(project: Project) -> Project:
    """A folder with the program, and a model that says one sentence."""
    shutil.copy(PROGRAM, project.folder / "shop.py")
    (project.folder / "script.json").write_text(json.dumps([{"say": "Sorry, ada."}]), encoding="utf-8")
    project.env["REMIT_MODELS_DEFAULT"] = "scripted:script.json"
    return project


def test_the_program_on_the_page_is_the_example() -> None:
    (shown,) = [text for language, text in BLOCKS if language == "python"]
    assert shown in PROGRAM.read_text(encoding="utf-8")


def test_without_a_rule_the_refund_asks(shop: Project) -> None:
    shop.configure(modules=False)
    assert shop.here("run", "shop.py:give_back", "--customer", "ada").status == 4
    assert [one["tool"] for one in shop.here("confirm", "--json").json] == ["shop.refund"]
    assert shop.here("--module", "shop.py", "tools", "shop.refund").status == 0


def test_the_settings_on_the_page_let_it_run_and_the_answer_has_its_text(shop: Project) -> None:
    (settings,) = [text for language, text in BLOCKS if language == "toml"]
    (shop.folder / "remit.toml").write_text(settings, encoding="utf-8")
    assert json.loads(shop.here("run", "give_back", "--customer", "ada", "--json").out)["result"] == (
        "refunded 700 to ada"
    )
    assert "Sorry, ada." in shop.here("run", "apologise", "--customer", "ada").out


@pytest.mark.slow
def test_it_goes_on_after_it_was_killed(shop: Project) -> None:
    (settings,) = [text for language, text in BLOCKS if language == "toml"]
    (shop.folder / "remit.toml").write_text(settings, encoding="utf-8")
    program = shop.folder / "shop.py"
    program.write_text(program.read_text(encoding="utf-8").replace("run.sleep(0.1)", "run.sleep(2)"), encoding="utf-8")
    with shop.terminal("run", "give_back", "--customer", "ada") as screen:
        screen.expect(r"job (job_\w+)")
        screen.expect("shop.paid")
        screen.process.kill()
        screen.end()
    assert "refunded 700 to ada" in shop.here("resume", "last").out
