"""The figures of the documentation are those of the baseline."""

from __future__ import annotations

import pytest

from bench.baseline import Line, load
from bench.lab import RESTATE, ROOT
from bench.measure import Result
from bench.pages import PAGES, engines, gateways, numbers, with_figures

STEP = Result(
    name="replay, recorded step",
    value=53_021,
    unit="per second",
    floor=110_802,
    floor_ratio=0.477,
    mark="≥ 50,000 per second",
    met=True,
    note="floor: reading and folding its events",
)
PEER = Result(
    name=STEP.name,
    value=53_021,
    unit="per second",
    peer=RESTATE,
    peer_value=11_861,
    peer_ratio=4.47,
    mark="x",
    met=False,
)
LINES = [Line(result=each, commit="c0ffee", day="2026-01-31") for each in (STEP, PEER)]


@pytest.mark.parametrize("page", PAGES)
def test_every_table_of_figures_is_made_from_the_baseline(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "<!-- figures:" in text
    assert with_figures(text, load()) == text, "run `.venv/bin/python -m bench.pages`"


def test_a_line_shows_value_floor_ratio_and_mark_and_a_peers_line_the_peer() -> None:
    _, _, step, peer = numbers(LINES).splitlines()
    assert step == (
        "| replay, recorded step | 53,021 /s | reading and folding its events: 110,802 /s | 0.477 |"
        " ≥ 50,000 per second: met | c0ffee |"
    )
    assert peer == "| | 53,021 /s | Restate: 11,861 /s | 4.47 | x: missed | c0ffee |"


def test_an_engine_that_was_not_measured_has_a_dash() -> None:
    assert engines(LINES).splitlines()[-1] == "| recorded steps given back | 53,021 /s | - | - | - | 11,861 /s |"


def test_gateways_that_were_not_measured_have_no_row() -> None:
    assert len(gateways(LINES).splitlines()) == 2
