"""A storage under the threads of group commit that remembers what it was given."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from remit.errors import AppendConflictError, JournalError
from remit.journal.event import Blob, Commit
from tests.patience import PATIENCE_S


class Script:
    """A storage that remembers its groups and fails where it is told to."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.unfit: set[int] = set()
        self.error: Exception | None = None
        self.notices = 0
        self.gate = threading.Event()
        self.gate.set()
        self.wrote = threading.Event()

    def write(self, group: Sequence[Commit]) -> Sequence[JournalError | None]:
        self.gate.wait(PATIENCE_S)
        numbers = [commit.at for commit in group]
        if self.error is not None:
            raise self.error
        if self.unfit & set(numbers):
            raise OverflowError("too large")
        self.groups.append(numbers)
        self.wrote.set()
        return [AppendConflictError("refused") if number < 0 else None for number in numbers]

    def notice(self, _heads: bool) -> None:
        self.notices += 1


def answered(number: int, size: int = 0) -> tuple[Commit, asyncio.Future[JournalError | None]]:
    future: asyncio.Future[JournalError | None] = asyncio.get_running_loop().create_future()
    commit = Commit(appends=(), at=number, blobs=(Blob("", b"x" * size),), on_done=future.set_result)
    return commit, future
