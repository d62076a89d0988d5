"""Everything of one process: settings in, a working runtime out. The CLI, servers and tests use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from remit.clock import Clock, SystemClock
from remit.engines.local import LocalEngine
from remit.engines.owner import Owner, alive
from remit.engines.port import Engine
from remit.engines.presence import with_code
from remit.gateway.pipeline import Gateway
from remit.gateway.services import Services
from remit.jobs.program import Programs
from remit.jobs.recipe import Recipe, Recipes
from remit.jobs.runner import Runner
from remit.jobs.versions import Versions
from remit.journal.journal import Journal
from remit.policy.groups import parse_groups
from remit.policy.rules import Policy
from remit.providers.jobs import JobsProvider
from remit.randomness import RandomSource, SystemRandomSource
from remit.recipes.agent import agent
from remit.recipes.ask_model import ask_model
from remit.recipes.conversation import conversation
from remit.recipes.research_report import research_report
from remit.recipes.run_code_snippet import run_code_snippet
from remit.recipes.ticket_run import ticket_run
from remit.sandbox.enclosure import Enclosures
from remit.sandbox.opening import open_enclosures
from remit.service.exposed import ExposedJobs
from remit.service.modules import find
from remit.service.service import Service, service_over
from remit.settings import Settings
from remit.settings.principal import principal
from remit.tickets.derivation import Derivation
from remit.tickets.desk import Desk, DeskSettings
from remit.tools.catalog import Catalog
from remit.tools.function import FunctionTool
from remit.tools.migration import Migration, Migrations
from remit.tools.pins import Pins
from remit.tools.provider import ToolProvider
from remit.tools.remote import Authorizer
from remit.wiring.journal import open_journal
from remit.wiring.providers import mcp_providers, probes_for, servers_of, standard_providers
from remit.wiring.services import services_of

_RECIPES: Final = (agent, ask_model, conversation, research_report, run_code_snippet, ticket_run)
"""Recipes of every process."""

Report = Callable[[str, float | None, float | None, str], None]


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of one process, wired together."""

    settings: Settings
    journal: Journal
    services: Services
    gateway: Gateway
    engine: Engine
    enclosures: Enclosures
    service: Service

    async def close(self) -> None:
        """Let calls under way end, give jobs up, close providers and the journal."""
        await self.engine.drain(self.settings.jobs.drain_seconds)
        await self.engine.stop()
        await self.services.catalog.close()
        await self.enclosures.close()
        if self.services.models is not None:
            await self.services.models.close()
        await self.journal.close()


def open_runtime(
    settings: Settings,
    *,
    tools: Iterable[FunctionTool[..., Any]] = (),
    recipes: Iterable[Recipe[..., Any]] = (),
    providers: Iterable[ToolProvider] = (),
    migrations: Iterable[Migration] = (),
    clock: Clock | None = None,
    chance: RandomSource | None = None,
    report: Report | None = None,
    step_by_step: bool = False,
    authorizer: Authorizer | None = None,
) -> Runtime:
    """Open the journal and wire everything; call it on a running event loop.

    `authorizer` lets a person log in where an MCP server wants that. Raises JournalError or SettingsError.
    """
    clock = clock or SystemClock()
    found = find(settings.app.modules, settings.folder)
    policy = _policy(settings)
    journal = open_journal(settings, clock)
    programs = Programs(journal, Recipes((*_RECIPES, *found.recipes, *recipes), settings.jobs.code_version))
    pins = Pins(journal, trust=settings.mcp.first_use == "trust", principal=principal(settings))
    chance = chance or SystemRandomSource()
    servers = servers_of(settings)
    enclosures = open_enclosures(settings)
    every = [
        *standard_providers(settings, (*found.tools, *tools), enclosures),
        *mcp_providers(servers, settings, pins, clock, chance, authorizer, enclosures),
        *found.providers,
        *providers,
    ]
    catalog = _catalog(settings, every)
    migrating = Migrations((*found.migrations, *migrations))
    services = services_of(settings, journal, catalog, policy, probes_for(servers, settings, every), migrating)
    gateway = Gateway(services)
    engine = _engine(settings, gateway, programs, chance, report, step_by_step=step_by_step)
    desk = Desk(journal, services.metrics, chance, _desk_settings(settings))
    service = service_over(
        gateway,
        programs,
        pins,
        desk,
        servers,
        principal=principal(settings),
        wake=engine.wake,
        working=lambda: engine.working,
    )
    catalog.add(JobsProvider(ExposedJobs(service, settings.mcp.expose)))
    return Runtime(
        settings=settings,
        journal=journal,
        services=services,
        gateway=gateway,
        engine=engine,
        service=service,
        enclosures=enclosures,
    )


def _policy(settings: Settings) -> Policy:
    said = settings.policy
    return Policy.parse(said.rules, taint=said.taint, groups=parse_groups(said.groups))


def _catalog(settings: Settings, providers: Sequence[ToolProvider]) -> Catalog:
    return Catalog(
        providers,
        order=settings.tools.preferred_provider_order,
        choose=settings.tools.choose,
        closed=settings.tools.schema_gate != "off",
    )


def _engine(
    settings: Settings,
    gateway: Gateway,
    programs: Programs,
    chance: RandomSource,
    report: Report | None,
    *,
    step_by_step: bool,
) -> LocalEngine:
    services = gateway.services
    runner = Runner(
        journal=services.journal,
        gateway=gateway,
        programs=programs,
        versions=Versions(services.journal, services.catalog, settings.jobs.mismatch, services.migrations),
        max_value_bytes=settings.tools.max_value_bytes,
        chance=chance,
        report=report or (lambda _job, _done, _total, _message: None),
        worker=Owner.this().words,
        alive=alive,
        with_code=partial(with_code, services.journal),
        step_by_step=step_by_step,
    )
    return LocalEngine(runner, concurrency=settings.jobs.concurrency, lease_s=settings.jobs.lease_seconds)


def _desk_settings(settings: Settings) -> DeskSettings:
    tickets = settings.tickets
    return DeskSettings(
        schema_gate=settings.tools.schema_gate,
        no_mcp=settings.tools.no_mcp,
        derivation=Derivation(replies=tickets.derive_replies, tool_only=tickets.tool_only),
        cutover_until_ms=tickets.cutover_until_ms or None,
        max_evidence=settings.evidence.max_items_per_report,
    )
