from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, Run, recipe
from remit.service.options import Options
from remit.settings import load
from tests.pages.conftest import Served, token

pytestmark = pytest.mark.slow


@recipe("asking")
async def asking(run: Run) -> str:
    """Ask a model."""
    return (await run.model("one")).text


def remit(folder: Path, principal: str = "ada", price: float | None = 1_000_000) -> Remit:
    (folder / "s.yaml").write_text("[{say: four words are said}]")
    flags = {
        "models.default": "scripted:s.yaml",
        "models.prices": [{"model": "scripted:*", "input": 1, "output": price}] if price is not None else [],
        "journal.url": ":memory:",
        "app.principal": principal,
    }
    return Remit(settings=load(cwd=folder, file=None, env={}, flags=flags), recipes=[asking])


async def test_sums_stand_by_what_is_asked_for_with_a_bar_each(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path) as opened, served(opened) as browser:
        empty = await browser.get("/usage")
        assert "No model was asked in this time" in empty.text
        assert "remit run agent" in empty.text
        jobs = [await opened.start(asking()) for _ in range(2)]
        for job in jobs:
            await job
        by_job = (await browser.get("/usage?by=job&days=1")).text
        assert all(f'<a href="/jobs/{job.id}">' in by_job for job in jobs)
        assert by_job.count('width="1000.0"') == 2
        by_model = (await browser.get("/usage?by=model&days=all")).text
        assert "scripted:s.yaml" in by_model
        assert "<strong>2</strong> requests" in by_model
        assert (await browser.get("/usage?by=odd")).status == 400


async def test_sums_stand_by_recipe_and_label_and_day_by_day(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path) as opened, served(opened) as browser:
        for team in ("pay", "shop", "pay"):
            await (await opened.start(asking(), Options(labels={"team": team})))
        by_recipe = (await browser.get("/usage?by=recipe")).text
        assert re.findall(r'<th scope="row" class="about">(\w+)</th>', by_recipe) == ["asking"]
        by_label = (await browser.get("/usage?by=label&label=team")).text
        assert re.findall(r'<th scope="row" class="about">(\w+)</th>', by_label) == ["pay", "shop"]
        assert "Cost by day (UTC)" in by_label
        assert "Tokens by day (UTC)" in by_label


async def test_limits_say_how_full_they_are(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path) as opened, served(opened) as browser:
        assert "A day has no budget" in (await browser.get("/limits")).text
    (tmp_path / "s.yaml").write_text("[{say: four words are said}]")
    flags: dict[str, Any] = {
        "models.default": "scripted:s.yaml",
        "models.prices": [{"model": "scripted:*", "input": 1, "output": 1_000_000}],
        "models.day_cents": 5_000_000,
        "policy.rules": [{"id": "r", "tools": ["bank.*"], "effect": "allow", "limit": {"pot": "refunds"}}],
        "policy.pots": {"refunds": {"per": "day", "calls": 9}},
        "models.budgets": [{"name": "team", "tokens": 10, "then": "tell", "each": "principal"}],
        "limits.tools": {"bank.*": {"rate": "60/min"}, "mail.*": {"concurrency": 2, "each": "principal"}},
        "journal.url": ":memory:",
    }
    settings = load(cwd=tmp_path, file=None, env={}, flags=flags)
    async with Remit(settings=settings, recipes=[asking]) as opened, served(opened) as browser:
        assert "No model was asked today" in (await browser.get("/limits")).text
        await (await opened.start(asking(), Options(principal="ada")))
        page = (await browser.get("/limits")).text
        assert "of $50000 today" in page
        assert re.search(r'<th scope="row">ada</th><td>\$\d', page)
        assert '<th scope="row">refunds</th>' in page
        assert re.search(r"bank\.\*</th><td>60/min, 60 at once</td><td><progress[^>]*></progress> 0 %", page)
        assert re.search(r"mail\.\*</th><td>2 under way for each principal</td><td><span [^>]*>each has its own", page)
        assert re.search(r'<th scope="row">team · ada</th><td>\d+ of 10 tokens this month <progress max="100"', page)


async def test_without_prices_the_bars_show_tokens(served: Served, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("[{say: four words are said}]")
    flags = {"models.default": "scripted:s.yaml", "journal.url": ":memory:"}
    opened = Remit(settings=load(cwd=tmp_path, file=None, env={}, flags=flags), recipes=[asking])
    async with opened, served(opened) as browser:
        await (await opened.start(asking()))
        assert "no price is known" in (await browser.get("/usage")).text


async def test_names_are_never_markup(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, principal="<b>\u202eada") as opened, served(opened) as browser:
        await (await opened.start(asking()))
        text = (await browser.get("/usage?by=principal")).text
        assert "&lt;b&gt;⟨U+202E⟩ada" in text


async def test_usage_needs_the_scope_read(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path) as opened, served(opened, [token("ann", "call")]) as browser:
        await browser.log_in("secret-ann")
        assert (await browser.get("/usage")).status == 403


@pytest.mark.parametrize(("price", "cost"), [(1_000_000, r"\$\d+\.\d\d"), (None, "\u2013")])
async def test_a_job_and_its_steps_say_what_models_used(
    served: Served, tmp_path: Path, price: float | None, cost: str
) -> None:
    async with remit(tmp_path, price=price) as opened, served(opened) as browser:
        job = await opened.start(asking())
        await job
        text = (await browser.get(f"/jobs/{job.id}")).text
        used = re.search(rf"<dt>Models</dt><dd><a [^>]*>1 request, (\d+) tokens, {cost}</a></dd>", text)
        assert used is not None
        assert f'<span class="dim small">{used[1]} tokens' in text
