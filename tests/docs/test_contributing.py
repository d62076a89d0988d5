"""CONTRIBUTING.md names files and tests that exist."""

from __future__ import annotations

import re
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
