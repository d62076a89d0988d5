from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from remit.clock import SystemClock
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit.parts.web.engine import Extractors
from remit.parts.web.fetcher import Fetcher
from tests.parts.web.engine import Engine
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes long to start the processes that extract."""
    monkeypatch.setattr(Extractors.__init__, "__defaults__", (2, PATIENCE_S))


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    engine = Engine()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", engine.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield engine
    await runner.cleanup()


@pytest.fixture
async def fetcher(engine: Engine) -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(private=(engine.base.removeprefix("http://"),))
    yield fetcher
    await fetcher.close()


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    clock = SystemClock()
    journal = Journal(SqliteStore(":memory:", clock), clock)
    yield journal
    await journal.close()
