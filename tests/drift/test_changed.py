"""The table of docs/versions.md says what drift and check say, and what becomes of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drift.changed import EVERY, HEAD, PAGE, POLICIES, checked, first, golden, made, pay, recorded, row

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kind", "name"), EVERY)
async def test_a_row_of_the_page_is_what_happens(tmp_path: Path, kind: str, name: str) -> None:
    job = await recorded(tmp_path)
    assert await row(tmp_path, job, await golden(), kind, name) in rows()


def test_the_page_has_every_change_and_no_other() -> None:
    assert [line.split(" | ")[0] for line in rows()] == [f"| {kind}: {name}" for kind, name in EVERY]


async def test_what_did_not_change_is_the_same_under_every_policy() -> None:
    ended = await golden()
    assert {await checked(ended, [made(pay)], [first], policy) for policy in POLICIES} == {"same"}


def rows() -> list[str]:
    return PAGE.read_text(encoding="utf-8").partition(HEAD)[2].strip().partition("\n\n")[0].splitlines()
