"""docs/codes.md lists every code as the table has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from remit.codes import Code, Reserved

ROOT = Path(__file__).parents[2]
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


def test_the_reserved_codes_stand_in_a_section_of_their_own() -> None:
    reserved = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## Reserved")[2], re.MULTILINE)
    assert reserved == [code.name for code in Code if isinstance(code.value, Reserved)]
