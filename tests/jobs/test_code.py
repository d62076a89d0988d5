"""What counts as other code: the function, the user's own code that it uses, and nothing of how it is written down."""

from __future__ import annotations

import importlib.util
import linecache
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remit.errors import SettingsError
from remit.jobs import recipe as code
from remit.jobs.recipe import Recipe, Recipes, code_digest, code_version, text_digest

RECIPE = """
import helper_of_test
from helper_of_test import double, Rate

LIMIT = 3

async def work(run, number):
    '''Doubles.'''
    return double(number) + helper_of_test.other(LIMIT) + Rate().of(number)
"""
HELPER = """
FACTOR = 2

def double(number):
    return _times(number)

def _times(number):
    return number * FACTOR

def other(number):
    return number

def unused(number):
    return number

class Rate:
    def of(self, number):
        return number
"""


def loaded(folder: Path, name: str, source: str) -> Any:
    """A module made of a source."""
    path = folder / f"{name}.py"
    path.write_text(source)
    sys.modules.pop(name, None)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    yield tmp_path
    for name in [one for one in sys.modules if one.endswith("_of_test")]:
        del sys.modules[name]


def digest_of(folder: Path, recipe: str, helper: str) -> str:
    linecache.clearcache()
    for cached in (code._assignments, code._is_users):
        cached.cache_clear()
    loaded(folder, "helper_of_test", helper)
    return code_digest(loaded(folder, "recipe_of_test", recipe).work)


@pytest.mark.parametrize(
    ("recipe", "helper"),
    [
        (RECIPE.replace("    return", "    # a comment\n    return"), HELPER),
        (RECIPE.replace("Doubles.", "Makes it twice as much."), HELPER),
        (RECIPE, HELPER.replace("return number * FACTOR", "return (number *\n        FACTOR)  # twice")),
        (RECIPE, HELPER.replace("def unused(number):\n    return number", "def unused(number):\n    return 0")),
    ],
    ids=["comment", "docstring", "layout of a helper", "what is not used"],
)
def test_what_does_not_run_is_no_other_version(folder: Path, recipe: str, helper: str) -> None:
    assert digest_of(folder, recipe, helper) == digest_of(folder, RECIPE, HELPER)


@pytest.mark.parametrize(
    ("recipe", "helper"),
    [
        (RECIPE.replace("double(number) +", "double(number) -"), HELPER),
        (RECIPE.replace("LIMIT = 3", "LIMIT = 4"), HELPER),
        (RECIPE, HELPER.replace("number * FACTOR", "number + FACTOR")),
        (RECIPE, HELPER.replace("FACTOR = 2", "FACTOR = 3")),
        (RECIPE, HELPER.replace("def other(number):\n    return number", "def other(number):\n    return 0")),
        (
            RECIPE,
            HELPER.replace("def of(self, number):\n        return number", "def of(self, number):\n        return 0"),
        ),
    ],
    ids=["function", "constant", "helper of a helper", "its constant", "part of a module", "class"],
)
def test_what_runs_is_another_version(folder: Path, recipe: str, helper: str) -> None:
    assert digest_of(folder, recipe, helper) != digest_of(folder, RECIPE, HELPER)


def closing_over(value: Any) -> Any:
    async def work(run: Any) -> Any:
        return value

    return work


def test_what_a_closure_holds_counts() -> None:
    def one() -> int:
        return 1

    def two() -> int:
        return 2

    digests = {code_digest(closing_over(value)) for value in (1, 2, "1", (1, 2), one, two)}
    assert len(digests) == 6
    assert code_digest(closing_over(1)) == code_digest(closing_over(1))
    assert code_digest(closing_over([1])) == code_digest(closing_over([2])), "state is not code"


def test_a_version_of_an_older_remit_is_still_known() -> None:
    subject: Recipe[[], Any] = Recipe(closing_over(1), "r", "3")
    assert subject.runs(subject.execution_version)
    assert subject.runs(f"3+{text_digest(subject.function)}")
    assert not subject.runs(f"2+{text_digest(subject.function)}")


def test_recipes_of_one_name_stand_side_by_side() -> None:
    one: Recipe[[], Any] = Recipe(closing_over(1), "r", "1")
    two: Recipe[[], Any] = Recipe(closing_over(2), "r", "2")
    known = Recipes([one, two])
    assert known.get("r") is two
    assert known.get("r", one.execution_version) is one
    assert known.get("r", "1+elsewhere") is one, "the same declared version is closest"
    assert known.get("r", "7+gone") is two
    assert known.all() == [two]


def test_the_version_of_the_code_may_come_from_a_package_from_git_or_be_given(tmp_path: Path) -> None:
    assert code_version("2026-11", str(tmp_path)) == "2026-11"
    assert code_version("package:msgspec", str(tmp_path)).count(".") == 2
    with pytest.raises(SettingsError, match="no package is named"):
        code_version("package:there-is-none", str(tmp_path))
    with pytest.raises(SettingsError, match="no commit"):
        code_version("git", str(tmp_path))
    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)  # noqa: S607 - the git of this machine
    (tmp_path / "sub").mkdir()
    assert len(code_version("git", str(tmp_path / "sub"))) == 12
