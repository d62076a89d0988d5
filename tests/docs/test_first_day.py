"""The four pages of the first day are short, lead from one to the next, and their commands do what they say."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.conftest import Project, project

__all__ = ["project"]

ROOT = Path(__file__).parents[2]
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
FIRST = re.findall(r"([\w-]+\.md)", CONFIG.partition("- First day:")[2].partition("- How-to guides:")[0])
PAGES = {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in FIRST}
WORDS = 1_200
SERVES = {"worker", "serve"}
"""Commands that run until they are stopped; tests of their own run them."""


def commands(page: str) -> list[tuple[list[str], int]]:
    """The words of every command of a page, and the status that it says."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = [line for language, text in blocks if not language for line in text.splitlines()]
    return [
        (shlex.split(part, comments=True), int(status[1]) if (status := re.search(r"# status (\d)", line)) else 0)
        for line in lines
        for part in line.split(" && ")
    ]


def test_the_first_day_is_four_pages() -> None:
    assert FIRST == ["start.md", "own-tool.md", "approvals.md", "look.md"]


@pytest.mark.parametrize("name", FIRST)
def test_a_page_of_the_first_day_is_short(name: str) -> None:
    assert len(PAGES[name].split()) <= WORDS


@pytest.mark.parametrize(("name", "after"), list(pairwise(FIRST)))
def test_each_page_leads_to_the_next(name: str, after: str) -> None:
    assert f"]({after})" in PAGES[name].partition("\nNext: ")[2]


@pytest.mark.slow
def test_the_commands_of_the_first_day_do_what_they_say(project: Project) -> None:
    project.folder, question = project.folder / "day", ""
    project.folder.mkdir()
    del project.env["REMIT_TRUST"]
    for page in (PAGES["start.md"], PAGES["approvals.md"], PAGES["look.md"]):
        for words, status in commands(page):
            match words:
                case ["cd", name]:
                    project.folder /= name
                case ["remit", command, *_] if command in SERVES:
                    continue
                case ["remit", *rest]:
                    done = project.here(*(question if word == "ID" else word for word in rest))
                    assert done.status == status, (words, done.err)
                    found = re.search(r"\bc_\w{26}\b", done.out + done.err)
                    question = found[0] if found else question
                case _:  # python FILE
                    ran = subprocess.run([sys.executable, *words[1:]], cwd=project.folder, env=project.env, check=False)
                    assert ran.returncode == 0, words
