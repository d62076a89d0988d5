"""Leases on PostgreSQL: the promises of tests/journal/test_leases.py, and the model of test_lease_model.py."""

from __future__ import annotations

import itertools
from typing import ClassVar

import pytest
from hypothesis import settings

from remit_testing.journal.storage import Storage
from remit_testing.leases import LEASE_CHECKS, Check, Make
from tests.journal.leasable import KINDS
from tests.journal.postgres.server import PostgresServer
from tests.journal.storages import PostgresStorage
from tests.journal.test_lease_model import LeaseModel

_numbers = itertools.count()


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("check", LEASE_CHECKS, ids=lambda check: check.__name__)
async def test_leases_in_postgresql_keep_their_promises(check: Check, make: Make, storage: PostgresStorage) -> None:
    await check(storage, make)


class OnPostgres(LeaseModel):
    kind = "ticket"
    server: ClassVar[PostgresServer]

    def storage(self) -> Storage:
        return PostgresStorage(f"{self.server.url}&schema=lease_{next(_numbers)}")


@pytest.fixture(autouse=True, scope="module")
def _on_the_server(postgres: PostgresServer) -> None:
    OnPostgres.server = postgres


class TestOnPostgres(OnPostgres.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = settings(max_examples=6, stateful_step_count=20, deadline=None)
