from __future__ import annotations

from remit.pages.steps import BUCKETS, strip_of
from remit.record.views import StepRow


def row(step: int, state: str = "ok") -> StepRow:
    return StepRow(step=str(step), name="tool.x", state=state, ok=state == "ok")


def test_every_row_is_in_one_piece_and_the_worst_of_a_piece_is_seen() -> None:
    groups = [[row(number, {500: "failed", 501: "waiting"}.get(number, "ok"))] for number in range(1, 1_001)]
    strip = strip_of(groups)
    assert len(strip.buckets) == BUCKETS
    assert [one.first for one in strip.buckets[1:]] == [one.last + 1 for one in strip.buckets[:-1]]
    assert (strip.buckets[0].first, strip.buckets[-1].last) == (1, 1_000)
    assert {one.first: one.kind for one in strip.buckets if one.kind != "work"} == {496: "failed", 501: "wait"}
    assert {one.state: one.rows for one in strip.jumps} == {"failed": (500,), "waiting": (501,)}


def test_a_short_list_has_a_piece_for_each_row() -> None:
    strip = strip_of([[row(1)], [row(2), row(3)]])
    assert [(one.first, one.last, one.x, one.width) for one in strip.buckets] == [(1, 1, 0, 500), (2, 2, 500, 500)]
    assert strip.buckets[1].height > strip.buckets[0].height
    assert strip_of([]).buckets == ()


def test_only_the_first_rows_of_a_state_are_named() -> None:
    (jump,) = strip_of([[row(number, "failed")] for number in range(9)]).jumps
    assert (jump.number, jump.rows) == (9, (1, 2, 3, 4, 5))
