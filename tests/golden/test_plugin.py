"""The plug-in for pytest and the job for GitHub Actions, run as a user's CI runs them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest
import yaml

from remit import Remit, Run, recipe, tool
from remit.golden.file import write
from tests.patience import PATIENCE_S

ROOT: Final = Path(__file__).parents[2]
WORKFLOW: Final = ROOT / "examples/ci/check.yml"
_MODULE: Final = '''
from remit import Run, recipe, tool

@tool("c.price", level="L0")
def price(sku: str) -> int:
    """Look a price up."""
    return len(sku)

@tool("c.pay")
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"

@recipe("buy", version="1")
async def buy(run: Run, sku: str) -> str:
    first = (await run.call("c.price", {"sku": sku})).value
    second = (await run.call("c.price", {"sku": "WORD"})).value
    return (await run.call("c.pay", {"amount": first + second})).value
'''
_TEST: Final = """
from shop import buy, pay, price

ALLOWED = {"effect": "allow", "tools": ["c.pay"]}

def test_golden_jobs(remit_golden):
    report = remit_golden("golden", tools=[price, pay], recipes=[buy], policy=[ALLOWED])
    assert report.counts["compatible"] == 1
"""
ALLOWED: Final = {"effect": "allow", "tools": ["c.pay"]}


@tool("c.price", level="L0")
def price(sku: str) -> int:
    """Look a price up."""
    return len(sku)


@tool("c.pay")
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@recipe("buy", version="1")
async def recorded(run: Run, sku: str) -> str:
    """The recipe as it was."""
    prices = [(await run.call("c.price", {"sku": each})).value for each in (sku, "tea")]
    return str((await run.call("c.pay", {"amount": sum(prices)})).value)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a golden job."""

    async def export() -> None:
        async with Remit(":memory:", tools=[price, pay], recipes=[recorded], policy=[ALLOWED]) as remit:
            job = await remit.service.jobs.start_named("buy", {"sku": "milk"})
            await remit.ended(job)
            write(tmp_path / "golden", await remit.service.golden.export(job, "one"))

    asyncio.run(export())
    rule = '[[policy.rules]]\neffect = "allow"\ntools = ["c.pay"]\n'
    (tmp_path / "remit.toml").write_text(f'[app]\nmodules = ["shop.py"]\n{rule}', encoding="utf-8")
    (tmp_path / "test_shop.py").write_text(_TEST, encoding="utf-8")
    code(tmp_path, "tea")
    return tmp_path


def code(project: Path, word: str) -> None:
    """Write the project's code, which asks for the price of this word."""
    (project / "shop.py").write_text(_MODULE.replace("WORD", word), encoding="utf-8")


def ran(project: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    env = {
        "HOME": str(project),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "GITHUB_STEP_SUMMARY": str(project / "summary.md"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "REMIT_TRUST": "1",
    }
    return subprocess.run(
        command, cwd=project, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.slow
def test_the_fixture_fails_the_test_of_a_recipe_that_went_another_way(project: Path) -> None:
    installed = any(point.value == "remit.golden.plugin" for point in entry_points(group="pytest11"))
    command = [sys.executable, "-m", "pytest", "-q", *(() if installed else ("-p", "remit.golden.plugin"))]
    good = ran(project, command)
    assert (good.returncode, "1 passed" in good.stdout) == (0, True), good.stdout + good.stderr
    code(project, "coffee")
    bad = ran(project, command)
    assert (bad.returncode, "one (buy) is failed: step 2" in bad.stdout) == (1, True), bad.stdout + bad.stderr


def test_the_plug_in_is_installed_with_remit() -> None:
    assert 'remit = "remit.golden.plugin"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_job_for_github_actions_checks_golden_jobs(project: Path) -> None:
    steps = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["golden"]["steps"]
    (check,) = [step["run"] for step in steps if step.get("name") == "Check golden jobs"]
    assert any(step.get("run") == "pip install remit" for step in steps)
    good = ran(project, ["bash", "-e", "-c", check])
    assert good.returncode == 0, good.stderr
    code(project, "coffee")
    bad = ran(project, ["bash", "-e", "-c", check])
    assert (bad.returncode, "step 2" in bad.stdout) == (2, True), bad.stdout + bad.stderr
    assert 'failures="1"' in (project / "remit-check.xml").read_text(encoding="utf-8")
    assert (project / "summary.md").read_text(encoding="utf-8").count("### remit check") == 2
