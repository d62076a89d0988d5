"""docs/codes.md lists every code as the table has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from remit.codes import Code

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/remit"
PAGE = (ROOT / "docs/codes.md").read_text(encoding="utf-8")


def row(code: Code) -> str:
    """The line of the page that a code has to have."""
    retry = "yes" if code.retryable else "no"
    return f"| `{code.name}` | {code.status} | {code.http} | {retry} | {code.meaning} |"


@pytest.mark.parametrize("code", Code, ids=str)
def test_every_code_is_listed_with_its_status_and_meaning(code: Code) -> None:
    assert row(code) in PAGE.splitlines()


def test_no_other_code_is_listed_and_each_only_once_in_the_order_of_the_table() -> None:
    listed = re.findall(r"^\| `(\w+)` \|.*\|.*\|.*\|", PAGE, re.MULTILINE)
    assert listed == [code.name for code in Code]


def test_every_status_is_explained() -> None:
    explained = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", PAGE, re.MULTILINE)
    assert set(explained) == {code.status for code in Code}


def test_the_reserved_codes_are_those_that_nothing_produces() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if path.name != "codes.py")
    named = {*re.findall(r"\bCode\.(\w+)", source), *re.findall(r"[\"'](\w+)[\"']", source)}
    reserved = re.findall(r"`(\w+)`", PAGE.partition("## Reserved")[2])[1:]
    unused = [code.name for code in Code if code.name not in named]
    assert sorted(reserved) == sorted(unused), (
        "list under Reserved in docs/codes.md what src does not name, and only that"
    )
