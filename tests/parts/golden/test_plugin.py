"""The plug-in for pytest and the job for GitHub Actions, run as a user's CI runs them."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from remit import Remit, Run, recipe, tool
from remit.parts.golden.file import write
from tests.patience import PATIENCE_S

ROOT: Final = Path(__file__).parents[3]
WORKFLOW: Final = ROOT / "examples/ci/check.yml"
ACTION: Final = ROOT / "action.yml"
HOOKS: Final = ROOT / ".pre-commit-hooks.yaml"
PEERS: Final = ROOT / "build/peers-releases"
_MAIN: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from pre_commit.main import main; sys.exit(main())"
_PRE_COMMIT: Final = (sys.executable, "-c", _MAIN, str(PEERS))
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
    installed = any(point.value == "remit.parts.golden.plugin" for point in entry_points(group="pytest11"))
    command = [sys.executable, "-m", "pytest", "-q", *(() if installed else ("-p", "remit.parts.golden.plugin"))]
    good = ran(project, command)
    assert (good.returncode, "1 passed" in good.stdout) == (0, True), good.stdout + good.stderr
    code(project, "coffee")
    bad = ran(project, command)
    assert (bad.returncode, "one (buy) is failed: step 2" in bad.stdout) == (1, True), bad.stdout + bad.stderr


def test_the_plug_in_is_installed_with_remit() -> None:
    assert 'remit = "remit.parts.golden.plugin"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


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


@pytest.mark.slow
def test_the_action_tests_rules_and_checks_golden_jobs(project: Path) -> None:
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    inputs = {name: given["default"] for name, given in action["inputs"].items()}
    install, *steps = action["runs"]["steps"]
    assert "$GITHUB_ACTION_PATH" in install["run"]
    assert {step["shell"] for step in action["runs"]["steps"]} == {"bash"}

    def statuses() -> list[int]:
        return [
            ran(project, ["bash", "-e", "-c", f"{_exports(step, inputs)}{step['run']}"]).returncode for step in steps
        ]

    assert statuses() == [0, 0]
    code(project, "coffee")
    with (project / "remit.toml").open("a", encoding="utf-8") as file:
        file.write('[[policy.tests]]\ntool = "c.pay"\nexpect = "deny"\n')
    assert statuses() == [1, 2]
    assert "### remit check" in (project / "summary.md").read_text(encoding="utf-8")


def _exports(step: dict[str, Any], inputs: dict[str, str]) -> str:
    """Return the variables of a step as GitHub sets them, with the inputs' defaults."""
    values = {
        name: inputs[text.removeprefix("${{ inputs.").removesuffix(" }}")] for name, text in step.get("env", {}).items()
    }
    return "".join(f"export {name}={shlex.quote(value)}; " for name, value in values.items())


@pytest.mark.slow
@pytest.mark.skipif(not (PEERS / "pre_commit").exists(), reason="needs build/peers-releases: make peers")
def test_pre_commit_runs_the_hooks_and_finds_what_they_find(project: Path) -> None:
    hooks = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))
    assert [hook["id"] for hook in hooks] == ["remit-policy-test", "remit-check"]
    assert ran(project, [*_PRE_COMMIT, "validate-manifest", str(HOOKS)]).returncode == 0
    here = [{**hook, "language": "system"} for hook in hooks]  # this Remit: pip would fetch what it needs
    config = {"repos": [{"repo": "local", "hooks": here}]}
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert ran(project, ["git", "init", "--quiet"]).returncode == 0
    assert ran(project, ["git", "add", "."]).returncode == 0
    good = ran(project, [*_PRE_COMMIT, "run"])
    assert (good.returncode, good.stdout.count("Passed")) == (0, 2), good.stdout + good.stderr
    code(project, "coffee")
    assert ran(project, ["git", "add", "."]).returncode == 0
    bad = ran(project, [*_PRE_COMMIT, "run", "--all-files"])
    assert (bad.returncode, bad.stdout.count("Failed"), "step 2" in bad.stdout) == (1, 1, True), bad.stdout + bad.stderr
