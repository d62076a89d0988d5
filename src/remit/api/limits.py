"""How many requests a principal may have under way at once, so that one client cannot lock the others out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from remit.codes import Code
from remit.http.problem import Problem

_RETRY_S: Final = 1


class Places:
    """Places for requests under way."""

    def __init__(self, per_principal: int) -> None:
        """Give each principal so many."""
        self._limit = per_principal
        self._taken: Counter[str] = Counter()
        self.closing = asyncio.Event()
        """Set once the server stops: streams end."""

    def close(self) -> None:
        """The server stops."""
        self.closing.set()

    @asynccontextmanager
    async def taken(self, principal: str) -> AsyncIterator[None]:
        """Hold a place within the block. Raise Problem (TOO_MANY_REQUESTS) if the principal has none left."""
        if self._taken[principal] >= self._limit:
            why = f"{self._limit} requests are under way already."
            raise Problem(Code.TOO_MANY_REQUESTS, why, {"retry-after": str(_RETRY_S)})
        self._taken[principal] += 1
        try:
            yield
        finally:
            self._taken[principal] -= 1
            if not self._taken[principal]:
                del self._taken[principal]
