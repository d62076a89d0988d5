"""CONTRIBUTING.md names files and tests that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TESTS = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/scripts").glob("test_*.py"))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:src|tests|docs|scripts)/[\w/.]+)`", PAGE))))
def test_every_file_exists(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_\w+)`", PAGE))))
def test_the_test_that_is_an_example_is_one(name: str) -> None:
    assert f"def {name}(" in TESTS


def test_the_floors_are_those_that_are_enforced() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [
        contract["layers"] for contract in contracts if contract["type"] == "layers" and contract.get("exhaustive")
    ]
    enforced = [re.findall(r"\w+", layer) for layer in layers]
    enforced[0].remove("__main__")
    block = PAGE.partition("## Floors")[2].split("```")[1]
    lines = re.findall(r"^(\w+(?: \| \w+)*)(?:$|  )", block, re.MULTILINE)
    assert [line.split(" | ") for line in lines] == enforced
