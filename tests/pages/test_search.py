"""Four doors, the pages behind questions, and the box that finds everything."""

from __future__ import annotations

import re
from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.pages.page import DOORS, QUESTIONS, RECENT, Memory
from remit.pages.renderer import entries_of
from remit.pages.table import PAGES
from remit.service.options import Options
from tests.pages.conftest import Served, token

pytestmark = pytest.mark.slow


@tool("shop.order", level="L0")
def order(item: str) -> str:
    """Order an item."""
    return item


@recipe("orders")
async def orders(run: Run, item: str) -> Any:
    """Order something at the shop."""
    return (await run.call("shop.order", {"item": item})).value


def remit() -> Remit:
    return Remit(":memory:", tools=[order], recipes=[orders])


async def done(opened: Remit, item: str, **options: Any) -> str:
    job = await opened.start(orders(item=item), Options(**options))
    await job
    return job.id


def links(text: str, part: str) -> list[str]:
    return re.findall(r'href="([^"]+)"', text.partition(part)[2].partition("</section>")[0])


async def test_four_doors_stand_above_every_page_and_the_rest_behind_questions(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        page = (await server.get("/more")).text
        menu = re.findall(r'<li><a href="([^"]+)"', page.partition("<nav")[2].partition("</nav>")[0])
        assert menu == ["/inbox", "/jobs", "/agents", "/work", "/more"]
        assert links(page, "What may run?") == ["/policy", "/servers", "/tools", "/limits", "/skills"]
        assert links(page, "What runs where?")[0] == "/workers"
        usage = (await server.get("/usage")).text
        assert '<a href="/agents" aria-current="page">Agents</a>' in usage
        assert '<a href="/usage" aria-current="page">Usage</a>' in usage


def test_every_entry_says_where_it_stands_what_is_there_and_a_key_of_its_own() -> None:
    entries = [entry for entry in entries_of(PAGES) if not entry.of]
    assert {entry.under for entry in entries} <= {*DOORS, *QUESTIONS}
    assert all(entry.about for entry in entries)
    keys = [entry.key for entry in entries]
    assert len(set(keys)) == len(keys)
    assert [entry.name for entry in entries[:4]] == list(DOORS)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("milk for ada", "/jobs/{job}"),
        ("SHOP.OR", "/tools/shop.order"),
        ("at the shop", "/jobs?recipe=orders"),
        ("rules", "/policy"),
        ("oat flakes", "/jobs/{job}?find=oat+flakes"),
    ],
    ids=["a job by its title", "a tool", "a recipe by what it does", "a page", "what was recorded"],
)
async def test_things_are_found_by_words(served: Served, words: str, wanted: str) -> None:
    async with remit() as opened, served(opened) as server:
        job = await done(opened, "oat flakes", title="Milk for Ada")
        text = (await server.get(f"/search?q={words.replace(' ', '+')}")).text
        assert f'href="{wanted.format(job=job)}"' in text


async def test_an_identifier_leads_to_the_job_or_the_step_at_once(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        job = await done(opened, "milk")
        for words, path in ((job, f"/jobs/{job}"), (f"{job[-6:]}+1", f"/jobs/{job}?step=1")):
            assert (await server.get(f"/search?q={words}")).headers["location"] == path
        assert (await server.get("/search?q=zz9zz9")).status == 200


async def test_people_are_found_by_what_they_asked_for(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        job = await done(opened, "tea", principal="ann")
        text = (await server.get("/jobs?principal=ann")).text
        assert job in text
        assert "Nothing has “zoe”" in (await server.get("/search?q=zoe")).text


async def test_what_was_looked_at_last_is_the_readers_own(served: Served) -> None:
    tokens = [token("ann", "read"), token("bob", "read")]
    async with remit() as opened, served(opened, tokens) as server:
        job = await done(opened, "milk")
        await server.log_in("secret-ann")
        await server.get(f"/jobs/{job}?step=1")
        assert f'<a href="/jobs/{job}">' in (await server.get("/search")).text
        await server.log_in("secret-bob")
        assert job not in (await server.get("/search")).text


def test_few_pages_are_remembered_and_each_once() -> None:
    memory = Memory(None)  # type: ignore[arg-type]  # no page is made
    for number in (*range(20), 19):
        memory.note("ann", str(number), f"/jobs/{number}?step=1")
    assert [one.path for one in memory.recent("ann")] == [f"/jobs/{number}" for number in range(19, 19 - RECENT, -1)]


async def test_a_reader_chooses_time_density_and_theme(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        await done(opened, "milk")
        berlin = {"cookie": "remit-zone=Europe%2FBerlin"}
        assert re.search(r'title="[^"]* CES?T ', (await server.get("/jobs", berlin)).text)
        page = await server.get("/more")
        fields = [("csrf", page.csrf), ("time", "utc"), ("density", "compact"), ("theme", "dark")]
        kept = await server.send("/display", fields)
        assert kept.headers["set-cookie"].startswith("remit-look=utc.compact.dark; Path=/;")
        text = (await server.get("/jobs")).text
        assert '<html lang="en" data-theme="dark" data-density="compact">' in text
        assert re.search(r'title="[^"]* UTC ', (await server.get("/jobs", {"cookie": "remit-look=utc"})).text)
        assert (await server.send("/display", [("csrf", page.csrf), ("theme", "pink")])).status == 400
