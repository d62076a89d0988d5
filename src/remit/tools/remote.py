"""A source of tools that lives elsewhere: what it can be asked beside its tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol, Self, runtime_checkable

import msgspec

from remit.codes import Code
from remit.tools.peer import OnlyPeer, Peer

PREFIX: Final = "mcp_"
"""The beginning of the id of an MCP server's provider."""
CONTENT: Final = "tool_content"
"""Kind of the evidence that holds, as JSON, the content blocks that stood beside a structured result."""
META: Final = "tool_meta"
"""Kind of the evidence that holds, as JSON, what an MCP server attached to a result for its client (`_meta`)."""
ATTACHMENT: Final = "tool_attachment"
"""Kind of the evidence that holds an image, a sound or a file of a result."""


BETWEEN_US: Final = ("dev.remit/", "io.modelcontextprotocol/")
"""The beginning of keys of `_meta` that are between Remit and whom it speaks to, and are not passed on."""
OUTCOME: Final = "dev.remit/outcome"
"""Key of an MCP result's `_meta` under which programs, and other Remits, find the outcome of a call."""


class RemoteStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers, as it says itself."""

    name: str
    version: str
    protocol: str
    """The revision of the protocol that was agreed on, such as `2025-11-25`."""
    era: str
    """`legacy` (a session that begins with initialize) or `modern` (2026-07-28: each request stands for itself)."""
    instructions: str
    """The text that it would have models know."""
    tools: int
    capabilities: dict[str, Any]
    """The capabilities that it offers beside tools, as it declared it."""
    introduction: dict[str, Any] = {}
    """Answer of it to the handshake, as it came: `serverInfo`, `capabilities`, `instructions`."""


class Outage(msgspec.Struct, frozen=True):
    """Why a remote's tools cannot be used now, from what is known without asking it."""

    cause: Code
    reason: str


LOGIN_PORT: Final = 8_322
"""Port of 127.0.0.1 that a person's browser comes back to; the same each time, for it is what was registered."""
MCP_ERROR: Final = "mcp_error"
"""Key of a failure's detail under which an MCP server's own error stands: code, message, data."""


def task_support(definition: Mapping[str, Any] | None) -> str:
    """Return whether its definition says that it is a task (2025-11-25): `forbidden`, `optional`, `required`."""
    execution = definition.get("execution") if definition is not None else None
    support = execution.get("taskSupport") if isinstance(execution, Mapping) else None
    return support if support in {"optional", "required"} else "forbidden"


class Authorized(NamedTuple):
    """The answer that a browser brings from an authorization server (RFC 6749, RFC 9207)."""

    code: str
    state: str | None = None
    iss: str | None = None


class Authorizer(Protocol):
    """Sends a person to a page where they log in, and hears what they brought back."""

    async def redirect(self, url: str) -> None:
        """Show the page."""
        ...

    async def callback(self) -> Authorized:
        """Return what the browser came back with."""
        ...


@runtime_checkable
class Probed(Protocol):
    """A provider that tools depend on, and that knows without asking whether it can be used."""

    @property
    def dependency(self) -> str:
        """Its key in readiness: stable, and no provider's id (contract: tickets, "Gates")."""
        ...

    @property
    def reached(self) -> bool:
        """Return whether it has ever answered this process."""
        ...

    def outage(self) -> Outage | None:
        """Return why a call would fail at once now, or tools are missing; None if it is up, or was not needed yet."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A provider whose tools are worded by someone else, and are therefore pinned."""

    @property
    def provider_id(self) -> str:
        """As the provider's."""
        ...

    async def status(self) -> RemoteStatus:
        """Connect, if need be, and tell who answers. Raises ProviderError."""
        ...

    async def relay(self, method: str, params: Mapping[str, Any], peer: Peer | None, principal: str) -> dict[str, Any]:
        """Give what it answers a principal to a request that is not a tool call, such as `resources/read`.

        Raises ProviderError.
        """
        ...

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification of a client's own on to it, if it is up."""
        ...

    async def restart(self, by: str) -> None:
        """End its connection once what is under way is answered, and begin a new one, even if it was given up."""
        ...

    async def become(self, other: Self) -> None:
        """Take the settings of another of its name, and restart by them as `restart` does."""
        ...

    async def retire(self) -> None:
        """End its connections once what is under way is answered, for good."""
        ...

    def serve_only(self, peer: OnlyPeer) -> None:
        """Speak to it for this peer alone from its next connection on: with its capabilities, its roots."""
        ...

    def subscribe(self, listener: Callable[[str, Mapping[str, Any]], None]) -> None:
        """Have `listener` called with method and params of what it tells everyone, such as changed resources."""
        ...

    async def definitions(self) -> Mapping[str, dict[str, Any]]:
        """Its tools exactly as it words them, by its own names. Raises ProviderError."""
        ...
