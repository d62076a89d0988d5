"""A result is accepted while it is the one in review, and at no other time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.work.decisions import ACCEPT, DecisionProvider
from remit.parts.work.store import WorkStore
from remit_testing.clock import ManualClock
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample, call_context
from tests.journal.storages import SqliteStorage
from tests.parts.work.test_store import ISSUE, result_of, start


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[WorkStore]:
    async with SqliteStorage(tmp_path / "journal.db").open(ManualClock()) as journal:
        work = WorkStore(journal)
        await work.open(ISSUE, "Mend the clock")
        order = await start(work)
        await work.accept(order, result_of(order))
        yield work


async def asked(store: WorkStore) -> dict[str, str]:
    """Return the arguments for the newest run."""
    return {"issue_ref": str(ISSUE), "run_id": next(reversed((await store.unit(ISSUE)).runs))}


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_it_is_a_provider_by_the_contract(check: Check, store: WorkStore) -> None:
    await check(lambda: DecisionProvider(store), Sample(ACCEPT, await asked(store)))


async def test_it_shows_the_result_that_it_accepts(store: WorkStore) -> None:
    preview = await DecisionProvider(store).preview(ACCEPT, await asked(store))
    assert preview is not None
    assert preview.diff == "+Done.\n+commit abc\n+pass make test"


@pytest.mark.parametrize("after", ["another run", "a decision"])
async def test_a_result_that_is_not_in_review_any_more_is_refused(store: WorkStore, after: str) -> None:
    args = await asked(store)
    if after == "another run":
        await start(store)
    else:
        await store.move(ISSUE, "done")
    with pytest.raises(ProviderError) as refused:
        await DecisionProvider(store).invoke(ACCEPT, args, call_context())
    assert refused.value.cause is Code.stale_run
