"""The simulation of shards, and the page that quotes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.shards import LOAD, STEPS, lines, simulate

PAGE = (Path(__file__).parents[2] / "docs/scaling.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_quotes_what_the_simulation_says() -> None:
    simulated = lines()
    assert [line for line in PAGE.splitlines() if line in simulated] == simulated


def test_one_shard_waits_as_the_theory_of_queues_says() -> None:
    row = simulate(1)
    mean = STEPS * (1 + LOAD / (2 * (1 - LOAD)))  # M/D/1
    assert mean < row.wait < 6 * mean
    assert (row.fullest, row.without_one) == (1.0, 1.0)
