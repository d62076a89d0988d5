"""The tables of docs/versions.md say what drift says, and what becomes of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drift.changed import HEAD, PAGE, RECIPES, TOOLS, recorded, row

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kind", "name"), [*(("tool", one) for one in TOOLS), *(("recipe", one) for one in RECIPES)])
async def test_a_row_of_the_page_is_what_happens(tmp_path: Path, kind: str, name: str) -> None:
    job = await recorded(tmp_path)
    assert await row(tmp_path, job, kind, name) in rows(kind)


@pytest.mark.parametrize(("kind", "names"), [("tool", list(TOOLS)), ("recipe", list(RECIPES))])
def test_the_page_has_every_change_and_no_other(kind: str, names: list[str]) -> None:
    assert [line.split(" | ")[0].removeprefix("| ") for line in rows(kind)] == names


def rows(kind: str) -> list[str]:
    return (
        PAGE.read_text(encoding="utf-8")
        .partition(HEAD.format(f"a {kind} changed"))[2]
        .strip()
        .partition("\n\n")[0]
        .splitlines()
    )
