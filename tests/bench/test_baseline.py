"""The baseline says what fell behind it, and keeps what was not measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.baseline import FILE, Line, fallen_behind, keep, load
from bench.measure import Result


def result(**fields: Any) -> Result:
    return Result(**{"name": "steps", "value": 100.0, "unit": "per second", **fields})


def line(**fields: Any) -> Line:
    return Line(result=result(**fields), commit="c0ffee", day="2026-01-31")


@pytest.mark.parametrize(
    ("before", "now", "falls"),
    [
        ({"floor_ratio": 1.0}, {"floor_ratio": 0.76}, False),
        ({"floor_ratio": 1.0}, {"floor_ratio": 0.74}, True),
        ({"peer": "other", "peer_ratio": 4.0}, {"peer": "other", "peer_ratio": 2.9}, True),
        ({"peer": "other", "peer_ratio": 4.0}, {"peer": "another", "peer_ratio": 1.0}, False),
        ({"unit": "bytes", "value": 1_000.0}, {"unit": "bytes", "value": 1_400.0}, True),
        ({"unit": "bytes", "value": 2.0}, {"unit": "bytes", "value": 30.0}, False),
        ({"unit": "ms", "value": 1.0}, {"unit": "ms", "value": 9.0}, False),
        ({"unit": "files", "value": 38.0}, {"unit": "files", "value": 39.0}, True),
        ({"unit": "moves", "value": 65.0}, {"unit": "moves", "value": 65.0}, False),
        ({"unit": "ms", "met": True, "mark": "≤ 5 ms"}, {"unit": "ms", "met": False, "mark": "≤ 5 ms"}, True),
        ({"floor_ratio": 1.0}, {"floor_ratio": None, "note": "skipped: no compiler"}, False),
    ],
)
def test_what_fell_by_more_than_a_quarter_is_said(before: dict[str, Any], now: dict[str, Any], *, falls: bool) -> None:
    assert bool(fallen_behind([result(**now)], [line(**before)])) is falls


def test_a_new_result_takes_the_place_of_the_old_one_and_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    keep([result(), result(name="jobs"), result(name="disk", note="skipped: none")], file)
    keep([result(value=7.0)], file)
    assert [(kept.result.name, kept.result.value) for kept in load(file)] == [("steps", 7.0), ("jobs", 100.0)]
    assert all(kept.commit for kept in load(file))


@pytest.mark.parametrize(
    ("now", "reason", "kept"),
    [
        ({"floor_ratio": 0.6}, "", 0.6),
        ({"floor_ratio": 0.4}, "", 0.5),
        ({"floor_ratio": 0.4}, "each step is signed now", 0.4),
    ],
)
def test_a_worse_result_takes_the_place_of_a_better_one_only_with_a_reason(
    tmp_path: Path, now: dict[str, Any], reason: str, kept: float
) -> None:
    file = tmp_path / "baseline.json"
    keep([result(floor_ratio=0.5)], file)
    keep([result(**now)], file, reason)
    (line,) = load(file)
    assert (line.result.floor_ratio, line.reason) == (kept, reason)


def test_a_reason_goes_where_the_result_is_no_worse(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    keep([result(floor_ratio=0.5)], file)
    keep([result(floor_ratio=0.4)], file, "each step is signed now")
    keep([result(floor_ratio=0.6)], file)
    assert [line.reason for line in load(file)] == [""]


def test_without_a_file_nothing_fell(tmp_path: Path) -> None:
    assert fallen_behind([result()], load(tmp_path / "none.json")) == []


def test_the_baseline_of_the_repository_can_be_read() -> None:
    assert FILE.exists()
    assert len({kept.result.name for kept in load()}) > 1
