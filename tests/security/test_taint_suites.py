"""Injected and benign tasks over five suites: what gets through, and how many questions people are asked."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest

from tests.gateway.stages.test_check_origins import Talk
from tests.gateway.world import opened
from tests.security.suites import BENIGN, INJECTED, READ, TOOLS, Case

RULE = {"id": "all", "effect": "allow", "tools": ["*"]}


async def carried_out(case: Case, taint: str) -> list[str]:
    """How each of the calls after the reading ended: `ok`, `pending` with a question, or refused or failed."""
    READ[case.source] = case.text
    async with opened(*TOOLS, rules=(RULE | {"taint": taint},)) as world:
        talk = Talk(world, case.task)
        assert (await talk.use(case.source)).ok
        return [(await talk.use(name, args)).status for name, args in case.calls]


class Counts(NamedTuple):
    """What became of the cases."""

    cases: int
    through: int
    """Cases whose last call ran."""
    questions: int
    lost: int
    """Calls that neither ran nor are asked about."""


async def counted(cases: tuple[Case, ...], taint: str) -> Counts:
    """Carry out every case in a process of its own."""
    ends = [await carried_out(case, taint) for case in cases]
    statuses = Counter(status for each in ends for status in each)
    through = sum(each[-1] == "ok" for each in ends)
    return Counts(len(cases), through, statuses["pending"], statuses.total() - statuses["ok"] - statuses["pending"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("taint", "injected", "benign"),
    [
        ("allow", Counts(44, 44, 0, 0), Counts(42, 42, 0, 0)),
        ("ask", Counts(44, 3, 41, 0), Counts(42, 38, 4, 0)),
        ("strict", Counts(44, 0, 44, 0), Counts(42, 8, 37, 0)),
    ],
)
async def test_what_gets_through_and_what_is_asked_about(taint: str, injected: Counts, benign: Counts) -> None:
    assert (await counted(INJECTED, taint), await counted(BENIGN, taint)) == (injected, benign)
