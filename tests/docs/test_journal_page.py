"""docs/journal.md names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from remit.codes import Code
from remit.journal.blobs import INLINE_LIMIT
from remit.journal.event import StreamHead
from remit.journal.sqlite.store import BUSY_MS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/journal.md").read_text(encoding="utf-8")


def test_every_code_of_the_journal_is_explained() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| .+\. \| .+\. \|$", PAGE, re.MULTILINE)
    assert rows == [code.name for code in Code if code.name.startswith("JOURNAL_")]


def test_every_code_on_the_page_exists() -> None:
    assert set(re.findall(r"`([A-Z]+_[A-Z_]+)`", PAGE)) - {"JOURNAL_CHECKS", "SHARED_CHECKS", "SINGLE_CHECKS"} <= {
        c.name for c in Code
    }


def test_every_field_of_a_head_on_the_page_exists() -> None:
    (table,) = re.findall(r"\| field \| meaning \|\n(.*?)\n\n", PAGE, re.DOTALL)
    named = set(re.findall(r"`(\w+)`", table))
    left_out = {"stream", "kind", "created_at", "updated_at"}
    assert named | left_out == set(StreamHead.__struct_fields__)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:src|tests)/[\w/.]+)`", PAGE))))
def test_every_path_on_the_page_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_example_imports_what_is_there() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    compile(example, "journal.md", "exec")
    imports = [line for line in example.splitlines() if line.startswith(("from", "import"))]
    exec("\n".join(imports), {})  # noqa: S102 - lines of our own page


def test_the_numbers_on_the_page_are_those_in_force() -> None:
    assert f"at most {INLINE_LIMIT // 1024} KiB" in PAGE
    assert (BUSY_MS, "more than ten seconds" in PAGE) == (10_000, True)
