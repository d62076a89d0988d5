"""Every wait of a test in a browser or at a terminal is as long as PATIENCE_S says, so that load fails none of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

HERE = Path(__file__).parent
FILES = [*sorted(HERE.glob("pages/*.py")), HERE / "cli" / "terminal.py"]
POSITIONAL = {"wait_for": 1, "timeout": 0, "set_default_timeout": 0, "set_default_navigation_timeout": 0}
"""Which argument of these is the bound."""


def short_waits(source: str) -> list[str]:
    """The bounds that do not follow from PATIENCE_S, or are shorter."""
    return [ast.unparse(bound) for bound in _bounds(ast.parse(source)) if not _is_patient(bound)]


def _bounds(tree: ast.AST) -> Iterator[ast.expr]:
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if ast.unparse(call.func) == "pytest.mark.timeout":
            continue  # the bound of a whole test, and no wait
        yield from (each.value for each in call.keywords if each.arg is not None and "timeout" in each.arg)
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name == "wait_for_timeout":
            yield call
        place = POSITIONAL.get(name)
        if place is not None and place < len(call.args):
            yield call.args[place]


def _is_patient(bound: ast.expr) -> bool:
    names = {node.id for node in ast.walk(bound) if isinstance(node, ast.Name)}
    if isinstance(bound, ast.Call) or names != {"PATIENCE_S"}:
        return False
    return bool(eval(ast.unparse(bound), {"PATIENCE_S": PATIENCE_S}) >= PATIENCE_S)  # noqa: S307 - our own sources


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_wait_is_shorter_than_the_patience_of_tests(path: Path) -> None:
    assert short_waits(path.read_text(encoding="utf-8")) == []


WAITS = re.compile(
    r"(asyncio\.timeout\(|\.wait_for\(.*, |\.(communicate|join|wait)\((timeout=)?|urlopen\(.*timeout=)[1-9][0-9]?\)"
)
"""A literal bound of a second or more of what every other test waits for; shorter ones are to pass."""


def test_no_literal_bounds_a_wait_of_any_other_test() -> None:
    others = [path for path in HERE.rglob("*.py") if path != Path(__file__)]
    assert [path.name for path in others if WAITS.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("x.wait(timeout=5)", ["5"]),
        ("page.click('a', timeout=500)", ["500"]),
        ("page.wait_for_timeout(60_000)", ["page.wait_for_timeout(60000)"]),
        ("asyncio.wait_for(x, 30)", ["30"]),
        ("asyncio.timeout(PATIENCE_S / 2)", ["PATIENCE_S / 2"]),
        ("context.set_default_timeout(PATIENCE_S * 1_000)", []),
        ("x.wait(timeout=PATIENCE_S)", []),
        ("pytest.mark.timeout(5)", []),
    ],
)
def test_a_short_wait_is_found(source: str, short: list[str]) -> None:
    assert short_waits(source) == short
