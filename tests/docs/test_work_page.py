"""docs/work.md is a walk-through that can be walked, and its executor does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from remit.parts.work.result import RESULT_CODES
from remit.parts.work.workflow import FlowTable, IssueGroup, OutboxTable, WorkflowFile
from tests.parts.work.executors.repository import git

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/work.md").read_text(encoding="utf-8")
EXECUTOR = ROOT / "examples/work/executor.sh"
RULES = '[[policy.rules]]\nid = "work"\neffect = "allow"\ntools = ["outbox.*", "executor.*"]\n'
OTHER = f"""
[executors.other]
program = "sh"
args = ["{EXECUTOR}", "sh", "-c", "cat >> clock.txt; echo It is mended."]
isolation = "none"

[executors.waits]
program = "sh"
args = ["{EXECUTOR}", "sh", "-c", "echo The vendor is away.; exit 75"]
isolation = "none"
"""


def section(title: str) -> str:
    """Return the text of a section."""
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


class Walk:
    """A repository, and a terminal there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        git(folder, "init", "--quiet", "--initial-branch", "main")
        (folder / "work.sh").write_text("echo mended > clock.txt; echo done\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", "Begin")
        (folder / "spec.md").write_text("It is slow on Mondays.\n")

    def type(self, line: str, *, status: int = 0) -> str:
        """Run a line of the page; what it prints."""
        env = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "REMIT_SANDBOX_FOLDER": str(self.folder.with_name("places")),
            "REMIT_TRUST": "1",
        }
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, (line, done.stdout, done.stderr)
        return done.stdout

    def prepare(self) -> None:
        """Let programs run without a question and without the sandbox, which this machine may lack."""
        with (self.folder / "remit.toml").open("a") as file:
            file.write(RULES)
        workflow = self.folder / "workflow.toml"
        shell = workflow.read_text().replace("timeout_seconds = 3600", 'timeout_seconds = 3600\nisolation = "none"', 1)
        workflow.write_text(shell + OTHER)


def test_the_first_run_can_be_walked(tmp_path: Path) -> None:
    walk = Walk(tmp_path / "project")
    lines = re.findall(
        r"^(\$ )?(.+)$", "\n".join(re.findall(r"```console\n(.*?)```", section("A first run"), re.DOTALL)), re.MULTILINE
    )
    typed, said = [line for mark, line in lines if mark], [line for mark, line in lines if not mark]
    out = ""
    for line in typed:
        if " work issue" in line:
            walk.prepare()
        out += walk.type(line)
    assert [line for line in said if line not in out.splitlines()] == []
    assert "local#1  done" in walk.type("remit work decide 'local#1' done --reason merged")
    runs = walk.type("remit work show 'local#1' --jq '[.runs[] | .executor]'")
    assert [name for name in ("manual", "other", "shell") if name not in runs] == []
    walk.type('remit work issue "Ask the vendor"')
    walk.type("remit work run 'local#2' --executor waits", status=3)
    shown = walk.type("remit work show 'local#2'")
    assert "The vendor is away." in shown
    assert "local#2  blocked" in shown
    branches = git(walk.folder, "branch", "--list", "--format=%(refname:short)", "run/local%231/*").splitlines()
    assert "mended\nIt is slow on Mondays." in {git(walk.folder, "show", f"{name}:clock.txt") for name in branches}


def test_the_executor_of_the_examples_is_short_and_named() -> None:
    assert len(EXECUTOR.read_text().splitlines()) <= 30
    assert "examples/work/executor.sh" in PAGE


@pytest.mark.parametrize(
    ("title", "table"), [("Forges", OutboxTable), ("The control plane", IssueGroup), ("The control plane", FlowTable)]
)
def test_every_key_is_explained(title: str, table: type) -> None:
    keys = set(table.__struct_fields__) - {"path"}  # type: ignore[attr-defined]
    assert [key for key in keys if key not in section(title)] == []


def test_every_table_and_every_result_code_is_named() -> None:
    assert [name for name in WorkflowFile.__struct_fields__ if f"[{name}" not in PAGE] == []
    assert {"outcome_unknown", "test_failed", "permission_denied"} <= RESULT_CODES
