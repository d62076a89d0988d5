"""The table of formats on the page about audit is the one that the code maps by."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from remit.parts.audit.formats.table import ROWS, FormatRow

PAGE = (Path(__file__).parents[2] / "docs/audit.md").read_text(encoding="utf-8")


def table() -> list[str]:
    """The rows of the page: events that are the same in every format share one."""
    kinds: dict[tuple[str, ...], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in ROWS:
        kinds[_cells(row)][row.kind].append(row.case)
    return [
        f"| {', '.join(_event(kind, cases) for kind, cases in by_kind.items())} | {' | '.join(cells)} |"
        for cells, by_kind in kinds.items()
    ]


def _cells(row: FormatRow) -> tuple[str, ...]:
    ael = f"{row.run}: `{row.name}` {row.direction}"
    return (ael, *(f"`{cell}`" if cell else "" for cell in (row.action, row.receipt, row.ocsf, row.span)))


def _event(kind: str, cases: list[str]) -> str:
    named = ", ".join(case for case in cases if case)
    return f"`{kind}` ({named})" if named else f"`{kind}`"


def test_the_page_has_each_row_of_the_table() -> None:
    assert [row for row in table() if row not in PAGE] == []
