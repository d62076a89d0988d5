"""The page about the browser: tools, ways out, and a recipe that runs."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from remit import Remit
from remit.parts.browser.program import find
from remit.parts.browser.shapes import TAKES
from remit.policy.rules import Policy
from remit.settings import load
from tests.parts.browser import ways

PAGE = (Path(__file__).parents[2] / "docs/browser.md").read_text(encoding="utf-8")
SEARCH = """<title>Shop</title><form action="/found"><input type="search" aria-label="Search" name="q"></form>"""


def test_every_tool_is_listed_with_what_it_takes() -> None:
    rows = dict(re.findall(r"^\| `browser\.(\w+)` \| (.*?) \|", PAGE, re.MULTILINE))
    taken = {name: list(takes.__struct_fields__) for name, (takes, _, _) in TAKES.items()}
    assert {name: re.findall(r"`(\w+)`", words) for name, words in rows.items()} == taken


def test_every_way_out_that_is_tried_is_listed() -> None:
    refused, quiet = (
        re.findall(rf"^\| {word}[^|]* \| (.*) \|$", PAGE, re.MULTILINE)[0].split(", ")
        for word in ("refused it", "heard nothing")
    )
    assert sorted([*refused, *quiet]) == sorted([*ways.ELEMENTS, *ways.SCRIPTS, *ways.PAGES])
    assert set(quiet) == ways.QUIET


def test_the_settings_and_rules_are_such(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "remit.toml").write_text(example, encoding="utf-8")
    settings = load(cwd=tmp_path, env={})
    assert len(settings.policy.rules) == 2
    assert Policy.parse(settings.policy.rules).hash


@pytest.fixture
async def shop() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        text = f"<p>found {request.query['q']}</p>" if request.path == "/found" else SEARCH
        return web.Response(text=text, content_type="text/html")

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.slow
@pytest.mark.skipif(find("") is None, reason="needs a browser: apt-get install chromium-headless-shell")
async def test_the_recipe_runs(shop: str, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    space: dict[str, Any] = {"__name__": "look_up_page"}
    exec(program, space)  # noqa: S102 - our own page
    settings = load(cwd=tmp_path, env={"REMIT_BROWSER_PRIVATE": shop, "REMIT_JOURNAL": ":memory:"})
    rules = [{"effect": "allow", "tools": ["browser.*"]}]
    async with Remit(settings=settings, policy=rules, recipes=[space["look_up"]]) as remit:
        assert await remit.run(space["look_up"](f"http://{shop}/", "lamp")) == "found lamp"
