"""Every promise names a test, and every test that is named exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+) \| (.+) \| (.*) \|$", PAGE, re.MULTILINE)
PROMISES = [(promise, proofs) for promise, _, proofs in ROWS if promise != "promise"]


def test_there_are_promises() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(PROMISES) == len(lines) > 30


@pytest.mark.parametrize(("promise", "proofs"), PROMISES, ids=[promise[:60] for promise, _ in PROMISES])
def test_every_promise_is_proven_by_tests_that_exist(promise: str, proofs: str) -> None:
    named = re.findall(r"`([^`]+)`", proofs)
    assert named, promise
    for name in named:
        path, _, test = name.partition("::")
        assert re.search(rf"^(?:async def|def|class) {test}\b|^{test} =", (ROOT / path).read_text(), re.MULTILINE), name
