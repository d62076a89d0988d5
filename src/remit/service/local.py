"""The service of a process that has the journal: what `remit.service.service` declares, made on use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from remit.capability import resolve
from remit.service.noun_means import NounOpening
from remit.settings.parts import settings_of

if TYPE_CHECKING:
    from remit.record.usage import Usage
    from remit.service.approvals import Approvals
    from remit.service.artifacts import Artifacts
    from remit.service.confirmations import ConfirmationsNoun
    from remit.service.health import Health
    from remit.service.jobs import Jobs
    from remit.service.mcp import McpServers
    from remit.service.parts import Parts, Worker
    from remit.service.policy import PolicyRules
    from remit.service.recipes import KnownRecipes
    from remit.service.requests import Requests
    from remit.service.saved_views import SavedViews
    from remit.service.service import Service
    from remit.service.sessions import Sessions
    from remit.service.steps import Steps
    from remit.service.streams import Streams
    from remit.service.tools import ToolsNoun
    from remit.service.verification import Elsewhere, Verifier
    from remit.service.workers import WorkersNoun


def service_over(parts: Parts, *, principal: str, worker: Worker) -> Service:
    """The service over the parts of this process; `principal` asks and decides if a call names no one else."""
    return cast("Service", ServiceOnUse(parts, principal, worker))


class ServiceOnUse:
    """The nouns of one journal, each imported and made when it is first used."""

    def __init__(self, parts: Parts, principal: str, worker: Worker) -> None:
        self._parts = parts
        self._principal = principal
        self._worker = worker
        self._wake = worker.wake

    def __getattr__(self, name: str) -> Any:
        """Make a noun of a part. Raise AttributeError if no part has it."""
        parts = () if name.startswith("_") else self._parts.parts
        declared = next(((part, noun) for part in parts for noun in part.nouns if noun.name == name), None)
        if declared is None:
            raise AttributeError(f"the service has no {name}")
        part, noun = declared
        own = settings_of(self._parts.settings, part.name, resolve(part.settings)) if part.settings else None
        opening = NounOpening(self._parts, cast("Service", self), own, self._principal, self._worker)
        opened = vars(self)[name] = resolve(noun.open)(opening)
        return opened

    def __dir__(self) -> list[str]:
        """Name the nouns of parts too, for a prompt that completes them."""
        return [*super().__dir__(), *(noun.name for part in self._parts.parts for noun in part.nouns)]

    @cached_property
    def jobs(self) -> Jobs:
        from remit.service.jobs import Jobs

        return Jobs(self._parts, self._principal, self._wake)

    @cached_property
    def steps(self) -> Steps:
        from remit.service.steps import Steps

        return Steps(self._parts.services, self._principal, self._wake)

    @cached_property
    def artifacts(self) -> Artifacts:
        from remit.service.artifacts import Artifacts

        return Artifacts(self._parts.journal)

    @cached_property
    def streams(self) -> Streams:
        from remit.service.streams import Streams

        return Streams(self._parts.services, self._verifiers)

    def _verifiers(self, elsewhere: Elsewhere) -> list[Verifier]:
        from remit.service.verification import verifiers_of

        return verifiers_of(self._parts, elsewhere)

    @cached_property
    def sessions(self) -> Sessions:
        from remit.service.sessions import Sessions

        if run := self._parts.settings.mcp.replays:
            from remit.service.recorded_sessions import RecordedSessions

            return RecordedSessions(self._parts, self._principal, run)
        return Sessions(self._parts.gateway, self._principal)

    @cached_property
    def confirmations(self) -> ConfirmationsNoun:
        from remit.service.confirmations import ConfirmationsNoun

        return ConfirmationsNoun(self._parts.services, self._principal, self._wake)

    @cached_property
    def approvals(self) -> Approvals:
        from remit.service.approvals import Approvals

        return Approvals(self._parts.services, self._principal, self._wake)

    @cached_property
    def policy(self) -> PolicyRules:
        from remit.service.policy import PolicyRules

        return PolicyRules(self._parts.services, lambda: self._parts.unlisted, self._principal)

    @cached_property
    def tools(self) -> ToolsNoun:
        from remit.service.tools import ToolsNoun

        return ToolsNoun(self._parts.services, self._principal)

    @cached_property
    def recipes(self) -> KnownRecipes:
        from remit.service.recipes import KnownRecipes

        return KnownRecipes(self._parts.programs.recipes)

    @cached_property
    def servers(self) -> McpServers:
        from remit.service.mcp import McpServers, Restarts

        parts = self._parts
        return McpServers(parts.catalog, parts.pins, Restarts(parts.journal, parts.catalog), parts.servers)

    @cached_property
    def usage(self) -> Usage:
        from remit.record.usage import Usage

        return Usage(self._parts.journal, self._parts.services.allowance)

    @cached_property
    def workers(self) -> WorkersNoun:
        from remit.service.workers import WorkersNoun

        return WorkersNoun(self._parts.journal, self._queues)

    @property
    def _queues(self) -> tuple[str, ...]:
        return tuple(queue for part in self._parts.parts for queue in part.queues)

    @cached_property
    def health(self) -> Health:
        from remit.service.health import Health

        return Health(self._parts.services, self._queues, self._parts.settings.serve.queue_bytes, self.policy.pots)

    @cached_property
    def requests(self) -> Requests:
        from remit.service.requests import Requests

        return Requests(self._parts.journal)

    @cached_property
    def saved_views(self) -> SavedViews:
        from remit.service.saved_views import SavedViews

        return SavedViews(self._parts.journal, self._principal)
