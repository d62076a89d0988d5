"""The access of a request: in whose name it comes, and its scopes.

The number of requests that a principal may have under way at once, so that one client cannot lock the others out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, Literal, get_args

import msgspec

from remit.codes import Code
from remit.http.problem import HttpProblem

Scope = Literal["read", "call", "decide", "tickets", "work", "admin"]
"""`read` jobs, traces and tools · `call` tools, start jobs · `decide` on questions · `tickets` · `work` · `admin`."""
SCOPES: Final[frozenset[Scope]] = frozenset(get_args(Scope))


class TokenIdentity(msgspec.Struct, frozen=True):
    """The proof of who came: whose token (JWT) it was, about whom, and by which key it is signed."""

    issuer: str
    subject: str
    key: str
    """The key's id at the issuer."""


class Assertion:
    """A caller's own token, for as long as the request lasts: to be exchanged for others, never recorded."""

    __slots__ = ("issuer", "subject", "token")

    def __init__(self, issuer: str, subject: str, token: str) -> None:
        self.issuer = issuer
        self.subject = subject
        self.token = token

    def __repr__(self) -> str:
        """Leave the token out."""
        return f"Assertion({self.issuer!r}, {self.subject!r})"


class Access(msgspec.Struct, frozen=True):
    """What the bearer of a token may do."""

    principal: str | None
    """The principal that its calls are recorded and judged as; None if the server knows no tokens: the process's own
    principal.
    """
    scopes: frozenset[Scope]
    tools: tuple[str, ...] = ()
    """Names or globs of the tools that it may see and call; empty: all that policy allows."""
    dialog: bool = False
    """True if a person answers the questions that its MCP client is asked: a program can answer them as well."""
    ask: str = ""
    """The place where a person is asked about calls of its MCP client, if not as `mcp.ask` says."""
    patience: int | None = None
    """Seconds, if not as `mcp.patience` says."""
    waiting: str = ""
    """The answer of a call that waits, if not as `mcp.waiting` says."""
    expose_tools: str = ""
    """The way its MCP client comes to its tools, if not as `mcp.expose_tools` says."""
    always: tuple[str, ...] = ()
    """The tools that its MCP client always lists, if not as `mcp.always` says."""
    identity: TokenIdentity | None = None
    """The proof of the bearer of an issuer's token; None without such a token."""
    assertion: Assertion | None = None
    """The issuer's token itself."""
    groups: frozenset[str] = frozenset()
    """The groups of a person who logged in, as the provider names them."""

    def allows(self, scope: Scope) -> bool:
        """Return whether it has the scope; `admin` stands for all."""
        return scope in self.scopes or "admin" in self.scopes

    def require_all_tools(self, what: str) -> None:
        """Raise Problem if it is for some tools only: `what` may call others."""
        if self.tools:
            raise HttpProblem(Code.SCOPE_REQUIRED, f"The token is for some tools only, and {what} may call others.")

    def require(self, scope: Scope) -> None:
        """Raise Problem if it lacks the scope (RFC 6750, section 3.1)."""
        if not self.allows(scope):
            header = f'Bearer error="insufficient_scope", scope="{scope}"'
            raise HttpProblem(Code.SCOPE_REQUIRED, f"This needs the scope {scope}.", {"www-authenticate": header})


ANYBODY: Final = Access(None, SCOPES)
"""The access of requests if the server knows no tokens, which it may only on loopback."""
OPERATOR: Final = Access(None, SCOPES, dialog=True)
"""The access of a client on stdio: the operator put this command into it, and sits before it."""


REQUESTS: Final = 64
"""Requests of one principal under way at once, over the API and over MCP each."""
_RETRY_S: Final = 1


class RequestPlaces:
    """Places for requests under way."""

    def __init__(self, per_principal: int) -> None:
        self._limit = per_principal
        self._taken: Counter[str] = Counter()
        self.closing = asyncio.Event()
        """Set once the server stops: streams end."""

    @asynccontextmanager
    async def taken(self, principal: str) -> AsyncIterator[None]:
        """Hold a place within the block. Raise Problem (TOO_MANY_REQUESTS) if the principal has none left."""
        if self._taken[principal] >= self._limit:
            reason = f"{self._limit} requests are under way already."
            raise HttpProblem(Code.TOO_MANY_REQUESTS, reason, {"retry-after": str(_RETRY_S)})
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
            reason = "Another request from this address took the place of this one."
            raise HttpProblem(Code.TOO_MANY_REQUESTS, reason, {"retry-after": str(_RETRY_S)}) from None
        finally:
            here.pop(place, None)
            if not here and self._taken.get(network) is here:
                del self._taken[network]


def _network(address: str) -> str:
    """The address, or of IPv6 the network that one client has for itself."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ip_network((ip, 64), strict=False)) if isinstance(ip, IPv6Address) else address
