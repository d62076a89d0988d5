"""The service: everything that a face may do, one noun per file.

Every face stands on it: the CLI, MCP clients, Python. Each noun has queries, which change nothing, and commands, which
are durable when they return. Their methods take and return plain values, so that they can be called over a wire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

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
from remit.service.ticket_runs import Worker
from remit.service.tickets import Tickets
from remit.service.tools import Tools
from remit.service.usage import Usage
from remit.service.workers import Workers

if TYPE_CHECKING:
    from remit.gateway.pipeline import Gateway
    from remit.jobs.program import Programs
    from remit.settings.mcp import McpServer
    from remit.tickets.desk import Desk
    from remit.tools.pins import Pins


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


def service_over(
    gateway: Gateway,
    programs: Programs,
    pins: Pins,
    desk: Desk,
    servers: Sequence[McpServer] = (),
    *,
    principal: str,
    wake: Callable[[], None],
    working: Callable[[], bool],
) -> Service:
    """The service over one gateway, its journal and its catalog.

    `servers` are the MCP servers that the settings name.

    `principal` asks and decides if a call names no one else. `wake` wakes the engine of this process, and
    `working` says whether it was started.
    """
    services, journal = gateway.services, gateway.services.journal
    jobs = Jobs(services, programs, principal, wake)
    return Service(
        jobs=jobs,
        steps=Steps(journal, services.catalog, principal, wake),
        artifacts=Artifacts(journal),
        streams=Streams(journal, services.confirmations, services.tails),
        sessions=Sessions(gateway, principal),
        confirmations=Confirmations(services, principal, wake),
        approvals=Approvals(services, principal, wake),
        policy=PolicyRules(services, principal),
        tools=Tools(services, principal),
        recipes=KnownRecipes(programs.recipes),
        servers=McpServers(services.catalog, pins, servers),
        tickets=Tickets(desk, jobs, principal, Worker(wake, working)),
        usage=Usage(journal, services.allowance.sums),
        workers=Workers(journal),
        conversations=Conversations(journal, jobs),
        health=Health(services),
        requests=Requests(journal),
        saved_views=SavedViews(journal, principal),
    )
