"""The access of a request: in whose name it comes, and its scopes."""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

from remit.codes import Code
from remit.http.problem import Problem

Scope = Literal["read", "call", "decide", "tickets", "work", "admin"]
"""`read` jobs, traces and tools · `call` tools, start jobs · `decide` on questions · `tickets` · `work` · `admin`."""
SCOPES: Final[frozenset[Scope]] = frozenset(get_args(Scope))


class Identity(msgspec.Struct, frozen=True):
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
    identity: Identity | None = None
    """The proof of the bearer of an issuer's token; None without such a token."""
    assertion: Assertion | None = None
    """The issuer's token itself."""

    def allows(self, scope: Scope) -> bool:
        """Return whether it has the scope; `admin` stands for all."""
        return scope in self.scopes or "admin" in self.scopes

    def require_all_tools(self, what: str) -> None:
        """Raise Problem if it is for some tools only: `what` may call others."""
        if self.tools:
            raise Problem(Code.SCOPE_REQUIRED, f"The token is for some tools only, and {what} may call others.")

    def require(self, scope: Scope) -> None:
        """Raise Problem if it lacks the scope (RFC 6750, section 3.1)."""
        if not self.allows(scope):
            header = f'Bearer error="insufficient_scope", scope="{scope}"'
            raise Problem(Code.SCOPE_REQUIRED, f"This needs the scope {scope}.", {"www-authenticate": header})


ANYBODY: Final = Access(None, SCOPES)
"""The access of requests if the server knows no tokens, which it may only on loopback."""
OPERATOR: Final = Access(None, SCOPES, dialog=True)
"""The access of a client on stdio: the operator put this command into it, and sits before it."""
