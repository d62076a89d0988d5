"""Jobs of one principal do not wait for all jobs of another."""

from __future__ import annotations

import asyncio

import pytest

from remit import Run, recipe
from remit.service.options import Options
from tests.journal.storages import PostgresStorage
from tests.opened import OpenRemit

MANY = 60
ANN = Options(principal="ann", labels={"team": "red"})
BOB = Options(principal="bob", labels={"team": "red"})
BLUE = Options(principal="ann", labels={"team": "blue"})


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return ":memory:"
    storage: PostgresStorage = request.getfixturevalue("storage")
    return storage.url


async def begun(remit_in: OpenRemit, url: str, share: str, other: Options) -> list[str]:
    """Start many jobs of one principal and team, then one with `other` options; the names as they begin."""
    order, go, done = list[str](), asyncio.Event(), asyncio.Event()

    @recipe("named")
    async def named(run: Run, name: str) -> None:
        order.append(name)
        if name == "first":
            await go.wait()
        if len(order) == MANY + 2:
            done.set()

    flags = {"journal.url": url, "jobs.concurrency": "1", "jobs.share": share}
    async with remit_in(recipes=[named], flags=flags) as remit:
        _ = await remit.start(named("first"), ANN)
        for number in range(MANY):
            _ = await remit.start(named(f"many {number}"), ANN)
        _ = await remit.start(named("one"), other)
        go.set()
        await done.wait()
    return order


@pytest.mark.slow
@pytest.mark.parametrize(("share", "other"), [("principal", BOB), ("label:team", BLUE)])
async def test_a_principal_or_a_team_does_not_wait_for_all_jobs_of_another(
    remit_in: OpenRemit, url: str, share: str, other: Options
) -> None:
    order = await begun(remit_in, url, share, other)
    assert order.index("one") <= 2
    order.remove("one")
    assert order == ["first", *(f"many {number}" for number in range(MANY))]


async def test_jobs_of_one_share_keep_their_order(remit_in: OpenRemit, url: str) -> None:
    order = await begun(remit_in, url, "principal", BLUE)
    assert order == ["first", *(f"many {number}" for number in range(MANY)), "one"]
