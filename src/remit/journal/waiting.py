"""Submits a commit and waits for its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.errors import JournalError
    from remit.journal.event import Commit
    from remit.journal.port import Store

Took = Callable[[float], None]
"""Called with the seconds that a commit took from its submission until it was done."""


async def done(store: Store, commit: Commit, took: Took | None) -> JournalError | None:
    """Submit, and wait; the error that it failed with. Cancelling the wait does not take the commit back."""
    future: asyncio.Future[JournalError | None] = asyncio.get_running_loop().create_future()
    commit.on_done = lambda error: None if future.done() else future.set_result(error)
    began = perf_counter()
    store.submit(commit)
    error = await future
    if took is not None:
        took(perf_counter() - began)
    return error
