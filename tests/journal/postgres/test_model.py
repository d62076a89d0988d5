"""The model of tests/journal/test_model.py, on PostgreSQL."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings

from remit_testing.journal.storage import Storage
from tests.journal.postgres.server import PostgresServer
from tests.journal.storages import PostgresStorage
from tests.journal.test_model import JournalModel

_numbers = itertools.count()


class OnPostgres(JournalModel):
    reopens = True
    server: ClassVar[PostgresServer]

    def storage_in(self, folder: Path) -> Storage:
        return PostgresStorage(f"{self.server.url}&schema=model_{next(_numbers)}")


@pytest.fixture(autouse=True, scope="module")
def _on_the_server(postgres: PostgresServer) -> None:
    OnPostgres.server = postgres


class TestOnPostgres(OnPostgres.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = settings(max_examples=8, stateful_step_count=25, deadline=None)
