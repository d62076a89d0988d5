"""Connections of aiohttp that go only to addresses that were judged (addresses.py).

A name is resolved once, and every address that it has is judged. An address that stands in a URL never comes by a
resolver, so the socket of each connection is judged too. Proxies that the environment names are not used, since they
would connect to what they like.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from remit.http.addresses import BlockedAddressError, Resolver, reachable, why_blocked

_private: Final[ContextVar[bool]] = ContextVar("remit_private", default=False)
"""True while a connection is made that may go to a private address."""


class BlockedSocketError(OSError):
    """A connection to an address that must not be reached; an OSError, as a connector expects one."""


@contextmanager
def private_if(named: bool) -> Iterator[None]:
    """Let connections within the block go to private addresses if the operator has named the place."""
    token = _private.set(named)
    try:
        yield
    finally:
        _private.reset(token)


def judging_connector(resolve: Resolver, limit: int) -> aiohttp.TCPConnector:
    """A connector for a client session, with so many connections at once."""
    return aiohttp.TCPConnector(
        limit=limit, resolver=_JudgingResolver(resolve), use_dns_cache=False, socket_factory=_socket
    )


class _JudgingResolver(AbstractResolver):
    """Resolves a name once and judges each of its addresses."""

    def __init__(self, resolve: Resolver) -> None:
        self._resolve = resolve

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - both are judged
    ) -> list[ResolveResult]:
        try:
            if _private.get():
                addresses = await self._resolve(host, port)
            else:
                addresses = [place.address for place in await reachable(host, port, self._resolve)]
        except BlockedAddressError as error:
            raise BlockedSocketError(str(error)) from error
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        pass


def _socket(address: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
    """Make the socket of a connection. Raises BlockedSocketError for an address that must not be reached."""
    family, kind, protocol, _, place = address
    reason = "" if _private.get() else why_blocked(str(place[0]))
    if reason:
        raise BlockedSocketError(f"{place[0]}: {reason}")
    return socket.socket(family=family, type=kind, proto=protocol)
