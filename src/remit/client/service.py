"""The service of a server: the nouns of `remit.service`, each of whose operations is one request.

What is declared of a noun's method makes its request (`remit.client.twin`); here and in the files beside stand the few
that need more than their request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remit.api.routes.tools import ExplainBody
from remit.canonical import sha256
from remit.capability import Noun, resolve
from remit.client.confirmations import RemoteConfirmations
from remit.client.connection import Connection
from remit.client.jobs import RemoteJobs
from remit.client.streams import RemoteStreams
from remit.client.twin import Twin, twin
from remit.codes import Code
from remit.errors import ServerError
from remit.policy.decision import CallerKind
from remit.policy.explain import Explanation
from remit.record.usage import Usage
from remit.service.approvals import Approvals
from remit.service.artifacts import Artifacts
from remit.service.health import Health
from remit.service.mcp import McpServers
from remit.service.policy import PolicyRules
from remit.service.recipes import KnownRecipes
from remit.service.requests import Requests
from remit.service.saved_views import SavedViews
from remit.service.service import Service
from remit.service.sessions import Sessions
from remit.service.steps import Steps
from remit.service.tools import Tools
from remit.service.workers import Workers
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.parts import nouns_of


class RemoteArtifacts(Twin, Artifacts):
    """The artifacts of a server's jobs."""

    async def read(self, job: str, digest: str) -> bytes:
        data: bytes = await self._connection.ask("artifacts.read", job, digest)
        if sha256(data) != digest:
            why = f"the received bytes of {digest} have another digest"
            raise ServerError(why, code=Code.SERVER_ANSWER_INVALID, remedy="Ask again.")
        return data


class RemotePolicy(Twin, PolicyRules):
    """The rules of a server."""

    async def explain(
        self,
        tool: str,
        args: dict[str, Any],
        *,
        principal: str,
        kind: CallerKind = "session",
        recipe: str = "",
        given: Mapping[str, Any] | None = None,
    ) -> Explanation:
        body = ExplainBody(tool=tool, args=args, principal=principal, kind=kind, recipe=recipe, given=dict(given or {}))
        explanation: Explanation = await self._connection.ask("policy.explain", body=body)
        return explanation


def _twin_of(noun: Noun, kind: type, connection: Connection) -> Any:
    return resolve(noun.remote)(connection) if noun.remote else twin(kind, connection)


def service_at(connection: Connection) -> Service:
    """The service at the other end of a connection. What is not declared is refused with LOCAL_ONLY."""
    return Service(
        jobs=RemoteJobs(connection),
        steps=twin(Steps, connection),
        artifacts=RemoteArtifacts(connection),
        streams=RemoteStreams(connection),
        sessions=twin(Sessions, connection),
        confirmations=RemoteConfirmations(connection),
        approvals=twin(Approvals, connection),
        policy=RemotePolicy(connection),
        tools=twin(Tools, connection),
        servers=twin(McpServers, connection),
        recipes=twin(KnownRecipes, connection),
        workers=twin(Workers, connection),
        usage=twin(Usage, connection),
        health=twin(Health, connection),
        requests=twin(Requests, connection),
        saved_views=twin(SavedViews, connection),
        of_parts={noun.name: _twin_of(noun, kind, connection) for noun, kind in nouns_of(FIRST_PARTY)},
    )
