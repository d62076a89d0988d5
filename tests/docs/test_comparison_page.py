"""Each row about other products says how it is known, and what it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")
SOURCE = "how we know"
PROGRAMS = {path.stem for path in (ROOT / "bench/peers/changed_code").glob("*_*.py")} - {"__init__"}
MEASURED = re.compile(r"<!-- figures: .*?<!-- end of figures -->", re.DOTALL)
TABLES = [
    [[cell.strip(" |") for cell in line.strip("|").split(" | ")] for line in table.splitlines()]
    for table in re.findall(r"(?:^\|.*\n)+", MEASURED.sub("", PAGE), re.MULTILINE)
]
"""All but those of figures, which are made from what was measured."""


def rows() -> list[tuple[str, str]]:
    """The first and the last cell of each row of a table with sources."""
    return [(line[0], line[-1]) for table in TABLES if table[0][-1] == SOURCE for line in table[2:]]


def test_every_table_that_sets_products_side_by_side_has_sources_of_a_date() -> None:
    assert {table[0][-1] for table in TABLES if len(table[0]) > 3} == {SOURCE}
    about = PAGE.partition("\n## ")[0]
    assert re.search(r"\*read\* means [^.]* in [A-Z][a-z]+ 20\d\d\b", about)


@pytest.mark.parametrize(("row", "source"), rows(), ids=[row for row, _ in rows()])
def test_a_row_says_that_it_was_tried_or_read_and_where(row: str, source: str) -> None:
    assert re.search(r"\btried\b", source) or (re.search(r"\bread\b", source) and "][" in source), row
    assert set(re.findall(r"`(\w+)`", source)) <= PROGRAMS


def test_every_program_is_named() -> None:
    assert {name for _, source in rows() for name in re.findall(r"`(\w+)`", source)} == PROGRAMS


def test_every_page_that_is_named_has_an_address() -> None:
    named = set(re.findall(r"\]\[([\w-]+)\]", PAGE))
    assert named == set(re.findall(r"^\[([\w-]+)\]: https://", PAGE, re.MULTILINE))
