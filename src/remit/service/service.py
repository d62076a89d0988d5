"""The service: everything that a face may do, one noun per file.

Every face stands on it: the CLI, MCP clients, Python. Each noun has queries, which change nothing, and commands, which
are durable when they return. Their methods take and return plain values, so that they can be called over a wire.
"""

from __future__ import annotations

import msgspec

from remit.record.usage import Usage
from remit.service.approvals import Approvals
from remit.service.artifacts import Artifacts
from remit.service.confirmations import Confirmations
from remit.service.conversations import Conversations
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
from remit.service.tickets import Tickets
from remit.service.tools import Tools
from remit.service.workers import Workers


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The nouns."""

    jobs: Jobs
    steps: Steps
    artifacts: Artifacts
    streams: Streams
    sessions: Sessions
    confirmations: Confirmations
    approvals: Approvals
    policy: PolicyRules
    tools: Tools
    recipes: KnownRecipes
    servers: McpServers
    tickets: Tickets
    usage: Usage
    workers: Workers
    conversations: Conversations
    health: Health
    requests: Requests
    saved_views: SavedViews
