"""The promises of every journal backend (journal/port.py), as checks that any test suite can run.

    class MyStorage:
        @asynccontextmanager
        async def open(self, clock):
            journal = Journal(MyStore(...), clock)
            try:
                yield journal
            finally:
                await journal.close()

    @pytest.mark.parametrize("check", [*JOURNAL_CHECKS, *SHARED_CHECKS], ids=lambda check: check.__name__)
    async def test_contract(check):
        await check(MyStorage())

Each check begins with empty storage. JOURNAL_CHECKS open it once; SHARED_CHECKS open it several times, at once and one
after the other, and are for every storage that outlives the process.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from remit_testing.journal import (
    appending,
    cutting,
    ending,
    erasing,
    leasing,
    listing,
    pruning,
    queueing,
    retiring,
    scanning,
    sharing,
    single,
    spanning,
    verifying,
    waking,
    watching,
)
from remit_testing.journal.storage import Check, Storage
from remit_testing.suite import checks_in

__all__ = ["JOURNAL_CHECKS", "SHARED_CHECKS", "SINGLE_CHECKS", "Check", "Storage"]


def _checks(*topics: ModuleType) -> tuple[Check, ...]:
    return tuple(check for topic in topics for check in checks_in(vars(topic)))


JOURNAL_CHECKS: Final = _checks(
    appending,
    spanning,
    waking,
    leasing,
    queueing,
    listing,
    scanning,
    verifying,
    pruning,
    cutting,
    erasing,
    single,
    retiring,
    watching,
    ending,
)
"""Promises of every storage, by topic."""

SHARED_CHECKS: Final = _checks(sharing)
"""Promises of storage that several instances, and so several processes, use at once."""

SINGLE_CHECKS: Final = (*_checks(single, retiring), sharing.check_a_move_by_another_process_ends_every_write)
"""Those of the checks above that a journal of several shards does not pass as a whole, but each of its shards does."""
