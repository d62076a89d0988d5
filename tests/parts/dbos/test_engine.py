"""Choosing an engine, and what only DBOS does. The rest stands in the contract (test_contract.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, Run, recipe
from remit.capability import Capability
from remit.errors import JournalError, SettingsError
from remit.service.options import Options
from remit.settings import load
from remit.wiring import capabilities, parts
from tests.journal.storages import PostgresStorage
from tests.opened import OpenRemit

needs_dbos = pytest.mark.skipif(importlib.util.find_spec("dbos") is None, reason="needs the extra dbos: make setup")


@recipe("ordered")
async def ordered(run: Run, name: str) -> str:
    """Say when it ran."""
    return f"{await run.now()} {name}"


def opened(folder: Path, url: str, **flags: Any) -> Remit:
    flags = {"journal.url": url, "jobs.engine": "dbos", "app.principal": "alice", **flags}
    return Remit(settings=load(env={}, cwd=folder, flags=flags), recipes=[ordered])


async def test_an_engine_that_nobody_brings_is_named_with_those_there_are(remit_in: OpenRemit) -> None:
    with pytest.raises(SettingsError, match=r"no engine is named 'temporal'") as refused:
        async with remit_in(flags={"jobs.engine": "temporal"}):
            pass
    assert refused.value.remedy == "Engines: local, dbos."


async def test_without_the_extra_the_error_says_how_to_install_it(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = Capability(name="dbos", about="", engine="x:y", modules=("no_such_module",), extra="dbos")
    kept = tuple(part for part in capabilities.FIRST_PARTY if part.name != "dbos")
    monkeypatch.setattr(parts, "FIRST_PARTY", (*kept, lacking))
    with pytest.raises(SettingsError, match="no_such_module is not installed") as refused:
        async with remit_in(flags={"jobs.engine": "dbos"}):
            pass
    assert refused.value.remedy == "Install it: pip install 'remit[dbos]'."


@pytest.mark.slow
@needs_dbos
async def test_without_postgresql_the_error_says_what_to_set(remit_in: OpenRemit) -> None:
    with pytest.raises(SettingsError, match="the journal is not on one PostgreSQL server") as refused:
        async with remit_in(flags={"jobs.engine": "dbos"}):
            pass
    assert "jobs.engine to local" in refused.value.remedy


@needs_dbos
@pytest.mark.slow
async def test_priorities_and_limits_of_dbos_hold_and_one_remit_of_a_process_has_it(
    tmp_path: Path, storage: PostgresStorage
) -> None:
    off = load(env={}, cwd=tmp_path, flags={"journal.url": storage.url, "app.principal": "alice"})
    async with Remit(settings=off, recipes=[ordered], work=False) as remit:
        names = [(await remit.start(ordered(str(place)), Options(priority=place // 4))).id for place in range(12)]
    limits = {"dbos.concurrency": 1, "dbos.rate": 1_000, "dbos.poll_millis": 20}
    async with opened(tmp_path, storage.url, **limits) as remit:
        results = sorted([await remit.job(name) for name in names], key=lambda result: float(result.split()[0]))
        assert [int(result.split()[1]) for result in results] == [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]
        async with opened(tmp_path, storage.url) as second:
            with pytest.raises(JournalError, match="already places the jobs of this process"):
                await second.engine.stopped()
