"""The service of a server: the nouns of `remit.service`, each method one request."""

from __future__ import annotations

import msgspec

from remit.client.artifacts import RemoteArtifacts
from remit.client.confirmations import RemoteApprovals, RemoteConfirmations
from remit.client.connection import Connection
from remit.client.conversations import RemoteConversations
from remit.client.jobs import RemoteJobs
from remit.client.recipes import RemoteRecipes
from remit.client.servers import RemoteServers
from remit.client.steps import RemoteSteps
from remit.client.streams import RemoteStreams
from remit.client.tickets import RemoteTickets
from remit.client.tools import RemotePolicy, RemoteSessions, RemoteTools
from remit.client.workers import RemoteWorkers


class RemoteService(msgspec.Struct, frozen=True, kw_only=True):
    """The nouns; see ServicePort."""

    jobs: RemoteJobs
    steps: RemoteSteps
    artifacts: RemoteArtifacts
    streams: RemoteStreams
    sessions: RemoteSessions
    confirmations: RemoteConfirmations
    approvals: RemoteApprovals
    policy: RemotePolicy
    tools: RemoteTools
    servers: RemoteServers
    recipes: RemoteRecipes
    conversations: RemoteConversations
    tickets: RemoteTickets
    workers: RemoteWorkers


def service_at(connection: Connection) -> RemoteService:
    """The service at the other end of a connection."""
    return RemoteService(
        jobs=RemoteJobs(connection),
        steps=RemoteSteps(connection),
        artifacts=RemoteArtifacts(connection),
        streams=RemoteStreams(connection),
        sessions=RemoteSessions(connection),
        confirmations=RemoteConfirmations(connection),
        approvals=RemoteApprovals(connection),
        policy=RemotePolicy(connection),
        tools=RemoteTools(connection),
        servers=RemoteServers(connection),
        recipes=RemoteRecipes(connection),
        conversations=RemoteConversations(connection),
        tickets=RemoteTickets(connection),
        workers=RemoteWorkers(connection),
    )
