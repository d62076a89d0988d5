"""A branch that waits for something outside its job."""

from __future__ import annotations

import asyncio
from typing import Any

from remit.jobs.effects import Answer, Wait
from remit.journal.kinds import Payload


class Waiting:
    """The wait, and the future its branch sleeps on: resolved with the answer, the event to record, and its blobs."""

    __slots__ = ("future", "wait")

    def __init__(self, wait: Wait) -> None:
        self.wait = wait
        self.future: asyncio.Future[tuple[Answer, Payload, tuple[Any, ...]]] = (
            asyncio.get_running_loop().create_future()
        )
