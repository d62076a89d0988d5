"""Every measurement of the bench runs, over so little that it takes a moment; what it measures is asserted nowhere."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest

from bench import measure
from bench.__main__ import ALL
from bench.lab import Lab
from bench.measure import Result
from bench.peers.postgres import Database, database

pytestmark = pytest.mark.slow

Measurement = Callable[[Lab], Awaitable[list[Result]]]
_LEAST = {
    "bench.browser": 1,
    "bench.steps": 64,
    "bench.scale": 200,
    "bench.api": 32,
    "bench.mcp_calls": 32,
    "bench.mcp_calls.IDLE": 2,
    "bench.journal": 8,
    "bench.workers": 1,
    "bench.usage": 200,
}
"""By module, or by its constant, what counts are lowered to where the others' are 4."""
_numbers = itertools.count()
_FEW = 4
_KEPT = {"SLOW_US", "FAST_US", "RULES"}
"""No counts of things that are done."""


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    """A server for all of them: making one takes longer than most of what is done there."""
    with database() as made:
        yield made


def _create(server: Database) -> Database:
    """Make a database in a server."""
    name = f"bench_{next(_numbers)}"

    async def create() -> None:
        connection = await asyncpg.connect(server.url)
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()

    with ThreadPoolExecutor(1) as pool:  # the one who asks has a loop of its own
        pool.submit(asyncio.run, create()).result()
    return server._replace(url=f"{server.url.rpartition('/')[0]}/{name}")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Lower the counts that a module of the bench names in capitals, and give it a database where it makes a server."""

    @contextmanager
    def shared() -> Iterator[Database]:
        yield _create(request.getfixturevalue("server"))

    monkeypatch.setattr(measure, "ROUNDS_AT_MOST", 1)
    monkeypatch.delenv("REMIT_TRUST", raising=False)  # nor has the person who measures
    for name, module in list(sys.modules.items()):
        if not name.startswith("bench."):
            continue
        if name != "bench.peers.postgres" and hasattr(module, "database"):
            monkeypatch.setattr(module, "database", shared)
        for constant, value in list(vars(module).items()):
            if constant.strip("_").isupper() and type(value) is int and constant not in _KEPT:
                least = _LEAST.get(f"{name}.{constant}", _LEAST.get(name, _FEW))
                monkeypatch.setattr(module, constant, min(value, least))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("measurement", ALL, ids=lambda measurement: measurement.__name__)
async def test_every_measurement_runs(measurement: Measurement, tmp_path: Path) -> None:
    results = await measurement(Lab(tmp_path))
    assert results
    for result in results:
        assert result.note.startswith("skipped: ") or result.name
