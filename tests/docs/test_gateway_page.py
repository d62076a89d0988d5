"""docs/gateway.md names the stages that there are, in their order, and codes that there are."""

from __future__ import annotations

import re
from pathlib import Path

from remit.codes import Code
from remit.gateway.pipeline import STAGES
from tests.every_kind import EVERY_KIND
from tests.gateway.stage_names import name_of

PAGE = (Path(__file__).parents[2] / "docs/gateway.md").read_text(encoding="utf-8")
STAGES_PART = PAGE.partition("## The stages")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| (\w+) \|(.*)\|(.*)\|(.*)\|$", STAGES_PART, re.MULTILINE)[1:]


def test_the_stages_are_listed_in_their_order() -> None:
    assert [row[0] for row in ROWS] == [name_of(stage) for stage in STAGES]


def test_every_code_that_a_stage_refuses_with_is_one_and_an_outcomes() -> None:
    codes = [code for row in ROWS for code in re.findall(r"`([A-Z_]+)`", row[2])]
    assert {Code[code].status for code in codes} == {"blocked", "failed", "pending"}


def test_every_event_that_a_stage_records_is_one() -> None:
    assert {kind for row in ROWS for kind in re.findall(r"`(\w+)`", row[3])} <= set(EVERY_KIND)


def test_every_other_code_on_the_page_is_one() -> None:
    assert set(re.findall(r"`([A-Z]+_[A-Z_]+)`", PAGE)) <= set(Code.__members__)
