"""Every attempt of the security review is a test, or a limit that docs/security.md names (attempts.toml)."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TABLE: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("attempts.toml").read_text(encoding="utf-8")
)
COUNTS = {
    "s01": 33, "s02": 61, "s03": 41, "s04": 41, "s05": 75, "s06": 30, "s07": 63, "s08": 34, "s09": 63, "s10": 19,
    "s11": 15, "s12": 10,
}  # fmt: skip
"""How many attempts each part of the review made."""
NODE = re.compile(r"(?P<file>tests/[\w/]+\.py)::(?P<name>\w+)(?:\[(?P<param>.+)\])?")


@cache
def source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def functions(file: str) -> dict[str, ast.AST]:
    """The tests of a file, by name."""
    found = ast.walk(ast.parse(source(file)))
    return {node.name: node for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def missing(node: str) -> str:
    """What of a named test there is not; empty if it is there, with its parameter."""
    found = NODE.fullmatch(node)
    if found is None or not (ROOT / found["file"]).is_file():
        return f"no file of tests: {node}"
    if not found["name"].startswith("test_") or found["name"] not in functions(found["file"]):
        return f"no test: {node}"
    if found["param"] and f'"{found["param"]}"' not in source(found["file"]):
        return f"no parameter: {node}"
    return ""


def test_no_attempt_is_left_out() -> None:
    assert {group: len(attempts) for group, attempts in TABLE.items()} == COUNTS


@pytest.mark.parametrize("group", COUNTS)
def test_every_attempt_names_tests_that_exist_or_a_reason(group: str) -> None:
    headings = {line.lstrip("# ").strip() for line in source("docs/security.md").splitlines() if line.startswith("#")}
    for name, attempt in TABLE[group].items():
        place = f"{group}/{name}"
        assert attempt["what"], place
        assert attempt.keys() <= {"what", "tests", "limit", "gone"}, place
        assert attempt.get("tests") or attempt.get("limit") or attempt.get("gone"), place
        assert attempt.get("limit", "Security") in headings, place
        assert [missing(node) for node in attempt.get("tests", ()) if missing(node)] == [], place


def test_the_check_finds_what_is_not_there() -> None:
    here = "tests/security/test_attempts.py"
    assert not missing(f"{here}::test_no_attempt_is_left_out")
    assert missing(f"{here}::test_nothing_of_this_name")
    assert missing(f"{here}::missing")
    assert missing("tests/security/test_nowhere.py::test_x")
    assert missing(f"{here}::test_no_attempt_is_left_out[" + "S99]")
