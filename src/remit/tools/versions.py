"""The port to what is known of tools' versions: who gives a tool its version, and what ran under which.

The journal is its default (`remit.record.uses`): it knows what was recorded. A registry of your own, such as one over a
service catalog, is handed in (`Remit(versions=…)`); then a tool whose provider gives it no version has the registry's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec


class ToolVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The version of a tool (contract: versioning, "Registry")."""

    version: str
    request_schema_hash: str = ""
    """Digest of its input schema; empty: not known."""
    response_schema_hash: str = ""
    """Digest of its output schema; empty: it has none, or it is not known."""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a tool that calls were made under."""

    tool: str
    provider_id: str
    version: str
    request_schema_hash: str
    response_schema_hash: str
    calls: int
    first_at: int
    """Microseconds since the Unix epoch."""
    last_at: int
    open_jobs: tuple[str, ...] = ()
    """Jobs with such a call that have not ended."""
    users: tuple[str, ...] = ()
    """Jobs, sessions and calls from outside with such a call, in the order of their first one."""


class ToolVersionRegistry(Protocol):
    """Knows the versions of tools."""

    async def get_tool_version(self, tool: str) -> ToolVersion | None:
        """The version of a tool, by its full name; None: it is not known. Raises JournalError."""
        ...

    async def uses(self, tool: str) -> Sequence[ToolUse]:
        """Return every version of a tool that calls were made under, the newest first. Raises JournalError."""
        ...

    async def schema(self, digest: str) -> Any:
        """The schema behind a hash; None: it is not known. Raises JournalError."""
        ...
