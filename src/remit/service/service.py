"""The service: everything that a face may do, one noun per file.

Every face stands on it: the CLI, MCP clients, Python. Each noun has queries, which change nothing, and commands, which
are durable when they return. Their methods take and return plain values, so that they can be called over a wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_type_hints

import msgspec

from remit.record.usage import Usage
from remit.service.approvals import Approvals
from remit.service.artifacts import Artifacts
from remit.service.confirmations import ConfirmationsNoun
from remit.service.health import Health
from remit.service.jobs import Jobs
from remit.service.mcp import McpServers
from remit.service.policy import PolicyRules
from remit.service.recipes import KnownRecipes
from remit.service.requests import Requests
from remit.service.saved_views import SavedViews
from remit.service.sessions import Sessions
from remit.service.steps import Steps
from remit.service.streams import Streams
from remit.service.tools import ToolsNoun
from remit.service.workers import WorkersNoun


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The nouns."""

    jobs: Jobs
    steps: Steps
    artifacts: Artifacts
    streams: Streams
    sessions: Sessions
    confirmations: ConfirmationsNoun
    approvals: Approvals
    policy: PolicyRules
    tools: ToolsNoun
    recipes: KnownRecipes
    servers: McpServers
    usage: Usage
    workers: WorkersNoun
    health: Health
    requests: Requests
    saved_views: SavedViews
    of_parts: Mapping[str, Any] = {}
    """The nouns of parts, by name."""

    def __getattr__(self, name: str) -> Any:
        """Return a noun of a part. Raise AttributeError if no part has it."""
        try:
            return self.of_parts[name]
        except KeyError:
            raise AttributeError(f"the service has no {name}") from None


CORE: Final = {name: kind for name, kind in get_type_hints(Service).items() if name != "of_parts"}
"""The classes of the core's nouns, by name."""
