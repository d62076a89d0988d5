from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from remit import Remit, Run, recipe, tool
from remit.clock import DAY
from remit.pages.chart import HEIGHT, BudgetLine, by_day
from remit.record.generations import GenerationSearch, percentiles, spreads
from remit.settings import load
from tests.pages.browsing import browsing, window
from tests.pages.conftest import Served, token

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>\u202e"
STEPS: list[dict[str, Any]] = [
    {"say": "I look.", "call": [{"tool": "pad.read", "args": {"text": HOSTILE}}]},
    {"say": f"It is about milk. {HOSTILE}"},
]


@tool("pad.read", level="L0")
def read(text: str) -> str:
    """Read."""
    return f"read {text}"


@recipe("asking")
async def asking(run: Run, number: int = 1) -> str:
    """Ask a model."""
    for question in range(number):
        await run.model(f"question {question}")
    return "done"


class Trouble:
    """Whether a recipe fails."""

    now = True


@recipe("failing")
async def failing(run: Run) -> str:
    """Ask, fail where there is trouble, and ask again."""
    await run.model("one")
    if Trouble.now:
        raise ValueError("trouble")
    return (await run.model("two")).text


def remit(folder: Path, steps: list[dict[str, Any]]) -> Remit:
    (folder / "s.json").write_text(json.dumps(steps))
    flags = {
        "models.default": "scripted:s.json",
        "models.prices": [{"model": "scripted:*", "input": 1_000, "output": 1_000}],
        "journal.url": ":memory:",
        "app.principal": "ada",
    }
    return Remit(settings=load(cwd=folder, file=None, env={}, flags=flags), tools=[read], recipes=[asking, failing])


async def agent(opened: Remit) -> str:
    job = await opened.service.jobs.start_named("agent", {"task": HOSTILE, "tools": ["pad.*"]})
    await opened.service.jobs.settled([job])
    return job


async def ask(opened: Remit, number: int) -> str:
    job = await opened.start(asking(number))
    await job
    return job.id


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([], None),
        ([7], (7, 7, 7)),
        ([3, 1, 2], (2, 3, 3)),
        (list(range(1, 101)), (50, 90, 99)),
        (list(range(1, 11)), (5, 9, 10)),
    ],
)
def test_percentiles_are_values_that_were_measured(values: list[int], found: tuple[int, int, int] | None) -> None:
    assert percentiles(values) == found


def test_days_are_stacked_by_model_to_the_height_of_the_largest() -> None:
    chart = by_day([{"s0": 1.0}, {}, {"s0": 1.5, "s1": 0.5}], 10 * DAY + 5)
    assert [column.since for column in chart.columns] == [8 * DAY, 9 * DAY, 10 * DAY]
    assert (chart.most, chart.total) == (2.0, 3.0)
    assert [(piece.sort, piece.y, piece.height) for piece in chart.columns[2].pieces] == [
        ("s0", HEIGHT / 4, 75.0),
        ("s1", 0.0, 25.0),
    ]


def test_budgets_are_lines_unless_they_are_far_above() -> None:
    lines = [BudgetLine(name="near", number=4.0), BudgetLine(name="far", number=4.1)]
    chart = by_day([{"s0": 1.0}, {"s0": 2.0}], 10 * DAY, lines)
    assert chart.most == 4.0
    assert [(line.name, line.y) for line in chart.lines] == [("near", 0.0), ("far", None)]
    assert [column.pieces[0].height for column in chart.columns] == [HEIGHT / 4, HEIGHT / 2]


async def test_requests_stand_newest_first_with_what_they_took(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, STEPS) as opened, served(opened) as browser:
        assert "No model was asked yet" in (await browser.get("/generations")).text
        job = await agent(opened)
        page = (await browser.get("/generations")).text
        links = re.findall(rf'href="/generations/{job}/([\d.]+)"', page)
        assert len(links) == 2
        assert links == sorted(links, reverse=True)
        assert "Cost by day (UTC)" in page
        assert "Percentiles by recipe" in page
        assert re.search(r'data-label="Cost" class="number">\$\d', page)
        assert "scripted:s.json" in page


async def test_a_filter_holds_for_model_recipe_principal_and_state(tmp_path: Path) -> None:
    async with remit(tmp_path, [{"say": "Milk."}]) as opened:
        await agent(opened)
        await ask(opened, 2)
        usage = opened.service.usage
        cases: list[tuple[GenerationSearch, int]] = [
            (GenerationSearch(), 3),
            (GenerationSearch(recipe="agent"), 1),
            (GenerationSearch(recipe="asking", model="s.json"), 2),
            (GenerationSearch(model="other"), 0),
            (GenerationSearch(principal="ada"), 3),
            (GenerationSearch(principal="bob"), 0),
            (GenerationSearch(state="ok"), 3),
            (GenerationSearch(state="failed"), 0),
        ]
        for wanted, number in cases:
            page = await usage.generations(wanted)
            assert (len(page.rows), page.next) == (number, 0), wanted
        most, least = spreads((await usage.generations(GenerationSearch())).rows, lambda row: row.recipe)
        assert (most.name, most.number, least.name, least.number) == ("asking", 2, "agent", 1)


async def test_pages_go_on_where_the_one_before_ended_and_lose_no_answer(tmp_path: Path) -> None:
    async with remit(tmp_path, [{"say": "yes"}]) as opened:
        await ask(opened, 7)
        await ask(opened, 4)
        before, steps = 0, []
        while True:
            page = await opened.service.usage.generations(GenerationSearch(before=before, limit=3))
            steps += [(row.job, row.step, row.state) for row in page.rows]
            if not page.next:
                break
            before = page.next
        assert len(steps) == len(set(steps)) == 11
        assert {state for _, _, state in steps} == {"ok"}
        assert [job for job, _, _ in steps] == sorted((job for job, _, _ in steps), reverse=True)


async def test_a_retry_does_not_list_again_what_it_took_over(tmp_path: Path) -> None:
    async with remit(tmp_path, [{"say": "yes"}]) as opened:
        Trouble.now = True
        job = await opened.service.jobs.start_named("failing", {})
        await opened.service.jobs.settled([job])
        Trouble.now = False
        retried = await opened.service.jobs.retry(job)
        await opened.service.jobs.settled([retried.job])
        assert (await opened.service.jobs.row(retried.job)).state == "completed"
        rows = (await opened.service.usage.generations(GenerationSearch())).rows
        assert [row.job for row in rows] == [retried.job, job]


async def test_a_refused_request_says_with_which_code(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, [{"expect": "nothing like it", "say": "no"}]) as opened, served(opened) as browser:
        job = await opened.service.jobs.start_named("asking", {})
        await opened.service.jobs.settled([job])
        (row,) = (await opened.service.usage.generations(GenerationSearch(state="failed"))).rows
        assert row.code
        assert row.code in (await browser.get(f"/generations/{row.job}/{row.step}")).text


async def test_a_request_is_shown_as_a_conversation_with_results_at_its_calls(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, STEPS) as opened, served(opened) as browser:
        job = await agent(opened)
        listed = (await browser.get("/generations")).text
        newest, first = re.findall(rf'href="(/generations/{job}/[\d.]+)"', listed)
        texts = [(await browser.get(path)).text for path in (first, newest)]
        for page in texts:
            assert "pad.read" in page
            assert "read &lt;script&gt;alert(1)" in page  # told by the next prompt, or in this one
            assert "no result yet" not in page
            assert "<script>alert" not in page
            assert "\u202e" not in page
        assert ["It is about milk." in page for page in texts] == [False, True]
        assert (await browser.get(f"/generations/{job}/99")).status == 404


async def test_two_requests_stand_side_by_side_without_what_is_the_same(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, STEPS) as opened, served(opened) as browser:
        job = await agent(opened)
        newest, first = re.findall(rf'name="call" value="({job} [\d.]+)"', (await browser.get("/generations")).text)
        both = f"/generations/compare?call={first.replace(' ', '+')}&call={newest.replace(' ', '+')}"
        page = (await browser.get(both)).text
        assert "The first message is the same" in page
        assert page.count("<h2>Answer</h2>") == 1
        assert "I look." in page
        assert "It is about milk." in page
        assert "1 is selected" in (await browser.get("/generations/compare?call=" + first.replace(" ", "+"))).text


async def test_a_token_for_some_tools_compares_no_job_of_others(served: Served, tmp_path: Path) -> None:
    narrow = token("bob", "read")
    narrow = structs.replace(narrow, access=structs.replace(narrow.access, tools=("pad.*",)))
    tokens = [token("ann", "call"), token("cat", "read"), narrow]
    async with remit(tmp_path, STEPS) as opened, served(opened, tokens) as browser:
        await agent(opened)
        (newest, *_) = (await opened.service.usage.generations(GenerationSearch())).rows
        call = f"call={newest.job}+{newest.step}"
        for name, listed, compared in (("ann", 403, 403), ("cat", 200, 200), ("bob", 200, 403)):
            await browser.log_in(f"secret-{name}")
            assert (await browser.get("/generations")).status == listed
            assert (await browser.get(f"/generations/compare?{call}&{call}")).status == compared, name


async def test_a_list_of_many_requests_reads_a_part_of_them(tmp_path: Path) -> None:
    async with remit(tmp_path, [{"say": "yes"}]) as opened:
        for _ in range(3):
            await ask(opened, 150)
        usage = opened.service.usage
        page = await usage.generations(GenerationSearch(limit=50))
        assert len(page.rows) == 50
        rare = await usage.generations(GenerationSearch(model="no such model"))
        assert rare.rows == []


async def test_the_pages_are_whole_in_a_browser(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, STEPS) as opened, served(opened) as server, browsing() as chromium:
        job = await agent(opened)
        step = re.findall(rf'href="/generations/{job}/([\d.]+)"', (await server.get("/generations")).text)[0]
        for width in (390, 1280):
            async with window(chromium, server.url, viewport={"width": width, "height": 900}) as shown:
                for path in ("/generations", f"/generations/{job}/{step}"):
                    await shown.open(path)
                    assert await shown.troubles() == []
                    assert await shown.width() <= width
                page = await shown.open("/generations")
                for box in await page.get_by_role("checkbox", name="Select").all():
                    await box.check()
                await page.get_by_role("button", name="Compare the two selected").click()
                await page.wait_for_url("**/generations/compare?**")
                assert await shown.troubles() == []
                assert await shown.width() <= width
