"""An MCP server as the operator wrote it down.

The terms that a tool or an MCP server gets in the sandbox: `sandbox = true`, or a table of these keys.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from remit.process.enclosure import SandboxTerms
from remit.settings.pictures import address, program

Era = Literal["auto", "legacy", "modern"]
LevelName = Literal["L0", "L1", "L2"]
LoginKind = Literal["shared", "user"]
Isolation = Literal["none", "sandbox", "elsewhere"]
"""`none`: a plain child process with our rights. `sandbox`: started in the sandbox, or not at all. `elsewhere`: reached
over HTTP, and we cannot say."""


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One `[[mcp.servers]]` table; either `command` or `url` is set."""

    name: str
    """`[a-z0-9]+(_[a-z0-9]+)*`: its tools are `mcp.<name>.<tool>`, its provider `mcp_<name>`."""
    command: tuple[str, ...] = ()
    """The command to start, argument by argument, for a server on stdio; never a shell line."""
    cwd: str = ""
    """Where to start it; absolute once loaded. Without it a folder of its own, or the project's in the sandbox."""
    env: dict[str, str] = {}
    """Added to the few variables a server is given (PATH, HOME and the like); `${NAME}` takes it from our own."""
    url: str = ""
    """Where a server on streamable HTTP answers."""
    headers: dict[str, str] = {}
    """Sent with every HTTP request; `${NAME}` takes a secret from our own environment."""
    oauth: dict[str, str] | None = None
    """Where the server wants someone to log in (`remit mcp login`): `{}`, or any of client_id, client_secret (as
    `${NAME}`), scope, issuer (the URLs of authorization servers elsewhere), client_metadata_url."""
    login: LoginKind = "shared"
    """Whose login calls use: one for all, or that of the principal that calls (`remit --as NAME mcp login`)."""
    timeout_ms: int = 0
    """Milliseconds a call may take; 0: `mcp.timeout_ms`."""
    grace_ms: int = 0
    """Milliseconds it has to end once its stdin is closed, and after SIGTERM; 0: `mcp.grace_ms`."""
    era: Era = "auto"
    """The protocol it speaks, where that is known: `legacy` (initialize) or `modern` (2026-07-28)."""
    level: LevelName = "L2"
    """The level of tools that `tools` does not name: the worst case unless the operator knows better."""
    tools: dict[str, LevelName] = {}
    """Levels by the server's own tool name or a pattern (`list_*`): an exact name wins, then the first pattern."""
    idempotent: tuple[str, ...] = ()
    """Names or patterns of tools that may be called again without changing more."""
    strict: bool = False
    """Whether arguments that a tool's schema does not declare are refused; else the server decides about them."""
    client_capabilities: dict[str, dict[str, Any]] | None = None
    """Capabilities of clients that it is told of where many clients share it, such as extensions."""
    sandbox: bool | SandboxTerms = False
    """Whether it is started in the sandbox, and on which terms; paths are absolute once loaded."""
    disabled: bool = False
    """Whether it is ignored."""

    def __repr__(self) -> str:
        """Leave out what may be secret."""
        return f"McpServer(name={self.name!r}, {self.where!r})"

    @property
    def isolation(self) -> Isolation:
        """Return what keeps it from the rest of this machine."""
        if self.url:
            return "elsewhere"
        return "none" if self.sandbox is False else "sandbox"

    @property
    def transport(self) -> Literal["stdio", "http"]:
        """Return how it is reached."""
        return "http" if self.url else "stdio"

    @property
    def where(self) -> str:
        """The program that is started, or the URL without what may be secret in it."""
        return address(self.url) if self.url else program("".join(self.command[:1]))


class McpServerTable(McpServer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[mcp.servers]]` table as it may be written."""

    command: str | tuple[str, ...] = ()  # type: ignore[assignment]  # one text too: loading makes a list of it
    """The command to start: a list, or the program as one text with `args` beside it; never a shell line."""
    cmd: str | tuple[str, ...] = ()
    """As `command`."""
    args: tuple[str, ...] = ()
    """The arguments of the command."""


def terms_of(option: bool | SandboxTerms) -> SandboxTerms | None:
    """The terms behind a value; None for false."""
    if isinstance(option, SandboxTerms):
        return option
    return SandboxTerms() if option else None
