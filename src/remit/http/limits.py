"""The number of requests that a principal may have under way at once, so that one client cannot lock the others out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from remit.codes import Code
from remit.http.problem import Problem

REQUESTS: Final = 64
"""Requests of one principal under way at once, over the API and over MCP each."""
_RETRY_S: Final = 1


class Places:
    """Places for requests under way."""

    def __init__(self, per_principal: int) -> None:
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


class Strangers:
    """Places for requests of clients that are not known, by the address that they come from.

    Many clients can share an address, behind a proxy all of them. So a new request is not refused, but takes the place
    of the oldest: who holds places without end locks no one out.
    """

    def __init__(self, per_address: int) -> None:
        self._limit = per_address
        self._taken: dict[str, dict[asyncio.Timeout, None]] = {}

    @asynccontextmanager
    async def taken(self, address: str) -> AsyncIterator[None]:
        """Hold a place within the block. Raise Problem (TOO_MANY_REQUESTS) once another request takes it."""
        network = _network(address)
        here = self._taken.setdefault(network, {})
        if len(here) >= self._limit:
            oldest = next(iter(here))
            del here[oldest]
            oldest.reschedule(0)
        place = asyncio.timeout(None)
        try:
            async with place:
                here[place] = None
                yield
        except TimeoutError:
            if not place.expired():
                raise
            why = "Another request from this address took the place of this one."
            raise Problem(Code.TOO_MANY_REQUESTS, why, {"retry-after": str(_RETRY_S)}) from None
        finally:
            here.pop(place, None)
            if not here and self._taken.get(network) is here:
                del self._taken[network]


def _network(address: str) -> str:
    """The address, or of IPv6 the network that one client has for itself."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ip_network((found, 64), strict=False)) if isinstance(found, IPv6Address) else address
