"""`remit verify --decisions` takes a refusal by a pot again, from the package alone."""

from __future__ import annotations

from pathlib import Path

from remit import Run, recipe, tool
from tests.opened import OpenRemit
from tests.parts.audit.test_interval import days, exported, on_day

FLAGS = {
    "policy.pots": {"pads": {"per": "week", "zone": "Europe/Berlin", "sum": {"pad.*": "pages/10"}, "max": 5}},
    "policy.rules": [
        {"id": "fill", "effect": "allow", "tools": ["pad.fill"], "limit": {"pot": "pads"}},
        {"id": "full", "effect": "deny", "tools": ["pad.*"], "limit": {"pot": "pads"}},
    ],
}


@tool("pad.fill")
def fill(pages: int) -> int:
    """Fill."""
    return pages


@recipe("fills")
async def fills(run: Run) -> list[str]:
    return [(await run.attempt("pad.fill", {"pages": pages})).status for pages in (40, 20, 10)]


async def test_a_refusal_by_a_pot_is_derived_from_the_package(remit_in: OpenRemit, tmp_path: Path) -> None:
    day = on_day(1)
    async with remit_in(**{**day, "tools": [fill], "recipes": [fills], "flags": day.get("flags", {}) | FLAGS}) as remit:
        assert await remit.run(fills()) == ["ok", "blocked", "ok"]
    verdict = await exported(remit_in, days(1, 1), tmp_path / "pots.zip")
    assert verdict.decisions is not None
    assert (verdict.decisions.decisions, verdict.decisions.not_derived) == (3, ())
