"""The only file that names concrete adapters: settings in, a working runtime out. The CLI, servers and tests use it."""

from __future__ import annotations

import getpass
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from remit.chance import Chance, SystemChance
from remit.clock import Clock, SystemClock
from remit.codes import Code
from remit.engines.local import LocalEngine
from remit.engines.owner import Owner
from remit.engines.port import Engine
from remit.errors import SettingsError
from remit.gateway.allowance import Allowance, DayLimits
from remit.gateway.confirmations import Confirmations
from remit.gateway.pipeline import Gateway
from remit.gateway.probes import probes_of, unavailable
from remit.gateway.proof import Proofs
from remit.gateway.readiness import Probe, Readiness
from remit.gateway.remembered import RememberedApprovals
from remit.gateway.services import Limits, Services
from remit.jobs.program import Programs
from remit.jobs.recipe import Recipe, Recipes
from remit.jobs.runner import Runner
from remit.jobs.versions import Versions
from remit.journal.journal import Journal
from remit.journal.port import Store
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit.metrics.registry import Registry
from remit.models.prices import Price, Prices
from remit.models.registry import Endpoints, Models
from remit.policy.rules import Policy
from remit.providers.folder import FolderSearchProvider
from remit.providers.fs import FsProvider
from remit.providers.functions import FunctionProvider
from remit.providers.jobs import JobsProvider
from remit.providers.mcp_absent import AbsentProvider
from remit.providers.sandbox import SandboxProvider
from remit.providers.stub import StubProvider
from remit.recipes.agent import agent
from remit.recipes.ask_model import ask_model
from remit.recipes.conversation import conversation
from remit.recipes.research_report import research_report
from remit.recipes.run_code_snippet import run_code_snippet
from remit.recipes.ticket_run import ticket_run
from remit.sandbox.enclosure import Enclosures
from remit.sandbox.opening import open_enclosures, open_sandbox
from remit.service.exposed import ExposedJobs
from remit.service.modules import find
from remit.service.service import Service, service_over
from remit.settings import Settings
from remit.settings.mcp import McpServer
from remit.settings.mcp_servers import configured_servers
from remit.settings.places import data_folder
from remit.settings.sections.journal import SERVERS
from remit.tickets.derivation import Derivation
from remit.tickets.desk import Desk, DeskSettings
from remit.tools.blocking import Threads
from remit.tools.catalog import Catalog
from remit.tools.function import FunctionTool
from remit.tools.meta import ToolMeta
from remit.tools.migration import Migration, Migrations
from remit.tools.pins import Pins
from remit.tools.provider import ToolProvider
from remit.tools.remote import Authorizer

_log: Final = logging.getLogger("remit.mcp")
_ALWAYS: Final = frozenset({"builtin", "folder", "jobs", "sandbox"})
"""Providers of every process."""
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
    chance: Chance | None = None,
    report: Report | None = None,
    step_by_step: bool = False,
    authorizer: Authorizer | None = None,
) -> Runtime:
    """Open the journal and wire everything; call it on a running event loop.

    `authorizer` lets a person log in where an MCP server wants that. Raises JournalError or SettingsError.
    """
    clock = clock or SystemClock()
    found = find(settings.app.modules, settings.folder)
    policy = Policy.parse(settings.policy.rules, taint=settings.policy.taint)
    journal = Journal(open_store(settings.journal.url, clock), clock)
    ours = (agent, ask_model, conversation, research_report, run_code_snippet, ticket_run)
    programs = Programs(journal, Recipes((*ours, *found.recipes, *recipes), settings.jobs.code_version))
    pins = Pins(journal, trust=settings.mcp.first_use == "trust", principal=principal(settings))
    chance = chance or SystemChance()
    servers = _servers(settings)
    enclosures = open_enclosures(settings)
    every = [
        *_providers(settings, (*found.tools, *tools), enclosures),
        *_mcp_providers(servers, settings, pins, clock, chance, authorizer, enclosures),
        *providers,
    ]
    catalog = _catalog(settings, every)
    migrating = Migrations((*found.migrations, *migrations))
    services = _services(settings, journal, catalog, policy, _probes(servers, settings, every), migrating)
    gateway = Gateway(services)
    runner = Runner(
        journal=journal,
        gateway=gateway,
        programs=programs,
        versions=Versions(journal, catalog, settings.jobs.mismatch, services.migrations),
        max_value_bytes=settings.tools.max_value_bytes,
        chance=chance,
        report=report or (lambda _job, _done, _total, _message: None),
        worker=Owner.this().words,
        step_by_step=step_by_step,
    )
    engine = LocalEngine(runner, concurrency=settings.jobs.concurrency, lease_s=settings.jobs.lease_seconds)
    desk = Desk(journal, services.metrics, chance, _desk_settings(settings))
    service = service_over(gateway, programs, pins, desk, servers, principal=principal(settings), poke=engine.poke)
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


def _catalog(settings: Settings, providers: Sequence[ToolProvider]) -> Catalog:
    return Catalog(
        providers,
        order=settings.tools.preferred_provider_order,
        choose=settings.tools.choose,
        closed=settings.tools.schema_gate != "off",
    )


def _services(
    settings: Settings,
    journal: Journal,
    catalog: Catalog,
    policy: Policy,
    probes: Mapping[str, Probe],
    migrations: Migrations,
) -> Services:
    return Services(
        journal=journal,
        catalog=catalog,
        policy=policy,
        readiness=Readiness(journal.clock, probes, settings.readiness.required),
        confirmations=Confirmations(journal, _proofs(settings)),
        remembered=RememberedApprovals(journal, count=settings.policy.remembered),
        limits=_limits(settings),
        allowance=Allowance(journal, _day_limits(settings)),
        models=_models(settings, journal.clock),
        default_model=settings.models.default,
        migrations=migrations,
        prices=Prices(_prices(settings)),
        metrics=_metrics(journal),
    )


def _metrics(journal: Journal) -> Registry:
    """The metrics of this process: first how long commits take, and what waits to be written."""
    metrics = Registry()
    commits = metrics.histogram("journal_commit_seconds", "Seconds that a commit took that was waited for.")
    journal.took = commits.taker()
    metrics.gauge("journal_backlog_bytes", "Bytes submitted to the journal and not yet written.", journal.backlog)
    return metrics


def _proofs(settings: Settings) -> Proofs:
    signers = settings.confirm.allowed_signers
    return Proofs(settings.confirm.proof, Path(signers) if signers else None, own=settings.confirm.own)


def _desk_settings(settings: Settings) -> DeskSettings:
    tickets = settings.tickets
    return DeskSettings(
        schema_gate=settings.tools.schema_gate,
        no_mcp=settings.tools.no_mcp,
        derivation=Derivation(replies=tickets.derive_replies, tool_only=tickets.tool_only),
        cutover_until_ms=tickets.cutover_until_ms or None,
        max_evidence=settings.evidence.max_items_per_report,
    )


def _models(settings: Settings, clock: Clock) -> Models:
    chosen = settings.models
    endpoints = Endpoints(
        openai=chosen.openai_url,
        anthropic=chosen.anthropic_url,
        google=chosen.google_url,
        ollama=chosen.ollama_url,
        patience_s=chosen.patience_seconds,
        at_once=chosen.at_once,
    )
    return Models(endpoints, os.environ, settings.folder, clock)


def _day_limits(settings: Settings) -> DayLimits:
    """Limits in force; 0 is none."""
    return DayLimits(tokens=settings.models.day_tokens or None, cost=settings.models.day_cents / 100 or None)


def _prices(settings: Settings) -> dict[str, Price]:
    """Prices of your own, by model. Raises SettingsError."""
    found: dict[str, Price] = {}
    for table in settings.models.prices:
        given = {name: value for name, value in table.items() if name != "model"}
        try:
            found[msgspec.convert(table.get("model"), str)] = msgspec.convert(given, Price, strict=False)
        except msgspec.ValidationError as error:
            why = f"models.prices: {error}"
            raise SettingsError(why, remedy="docs/models.md shows the keys of a price.") from error
    return found


def open_store(url: str, clock: Clock) -> Store:
    """The journal backend behind a URL: a path, `sqlite:///path`, `postgresql://…` or `:memory:`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return SqliteStore(url, clock)
    if scheme == "sqlite":
        return SqliteStore(rest.removeprefix("/") if rest == "/" + MEMORY else rest, clock)
    if scheme in SERVERS:
        from remit.journal.postgres.store import PostgresStore  # noqa: PLC0415 - its driver is an extra

        return PostgresStore(url, clock)
    remedy = "Give a path, sqlite:///path, postgresql://… or :memory:."
    raise SettingsError(f"no journal backend is named {scheme!r}", code=Code.SETTINGS_INVALID, remedy=remedy)


def principal(settings: Settings) -> str:
    """Who asks where nobody else is named."""
    if settings.app.principal:
        return settings.app.principal
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"


def cache_folder(settings: Settings) -> Path:
    """Where indexes live that can be made again: beside the project's journal."""
    return settings.folder / ".remit" / "cache"


def _providers(
    settings: Settings, tools: Iterable[FunctionTool[..., Any]], enclosures: Enclosures
) -> list[ToolProvider]:
    roots = [Path(root) for root in settings.fs.roots]
    threads = Threads(settings.jobs.concurrency)
    return [
        FsProvider(roots, settings.fs.max_read_bytes, decisive=_decisive(settings), threads=threads),
        FolderSearchProvider(
            cache_folder(settings),
            roots=roots,
            anywhere=settings.fs.search_anywhere,
            base=settings.folder,
            threads=threads,
        ),
        FunctionProvider(tools, threads=threads, enclosures=enclosures),
        SandboxProvider(open_sandbox(settings)),
    ]


def _decisive(settings: Settings) -> list[Path]:
    """What decides about agents: settings, modules, what is trusted. Modules of the folder may also be dotted names."""
    files = [Path(name) for name in settings.app.modules if name.endswith(".py")]
    packages = [settings.folder.joinpath(*name.split(".")) for name in settings.app.modules if not name.endswith(".py")]
    dotted = [path if path.is_dir() else path.with_suffix(".py") for path in packages]
    named = [settings.file] if settings.file is not None else []
    named += [Path(settings.confirm.allowed_signers)] if settings.confirm.allowed_signers else []
    return [*named, *files, *dotted, data_folder(os.environ)]


def _servers(settings: Settings) -> tuple[McpServer, ...]:
    """The MCP servers that are not disabled, also if `tools.no_mcp` is set."""
    found = configured_servers(settings, os.environ)
    for warning in found.warnings:
        _log.warning("%s", warning)
    return found.enabled


def _mcp_providers(
    servers: Sequence[McpServer],
    settings: Settings,
    pins: Pins,
    clock: Clock,
    chance: Chance,
    authorizer: Authorizer | None,
    enclosures: Enclosures,
) -> list[ToolProvider]:
    """One for each MCP server, or what stands in for all of them.

    The SDK behind them takes half a second to import; a process without servers does not pay for it.
    """
    if settings.tools.no_mcp:
        return [StubProvider(source=partial(_stand_ins, servers, pins))]
    if not servers:
        return []
    try:
        # An extra, and slow to import.
        from remit.providers.mcp.enclosed import launch_of  # noqa: PLC0415
        from remit.providers.mcp.oauth import Login  # noqa: PLC0415
        from remit.providers.mcp.provider import McpProvider  # noqa: PLC0415
    except ModuleNotFoundError as error:
        return [AbsentProvider(server.name, error.name or "mcp") for server in servers]
    login = Login(data_folder(os.environ) / "mcp-auth", authorizer)
    return [
        McpProvider(
            server,
            settings.mcp,
            pins,
            clock=clock,
            chance=chance,
            login=login,
            launch=launch_of(server, enclosures),
        )
        for server in servers
    ]


def stand_ins_of(tools: Iterable[ToolMeta]) -> list[ToolProvider]:
    """Providers that list these tools and run none: for looking at a catalog without starting what offers it.

    Tools that are always there are left out, since they speak for themselves.
    """
    by_provider: dict[str, list[ToolMeta]] = {}
    for tool in tools:
        if tool.provider_id not in _ALWAYS:
            by_provider.setdefault(tool.provider_id, []).append(tool)
    return [
        StubProvider(listed, provider_id=name if name.startswith("mcp_") else f"recorded_{name}")
        for name, listed in by_provider.items()
    ]


async def _stand_ins(servers: Sequence[McpServer], pins: Pins) -> list[ToolMeta]:
    from remit.providers.mcp.stand_ins import stand_ins  # noqa: PLC0415 - only a process without servers needs it

    return await stand_ins(servers, pins)


def _probes(servers: Sequence[McpServer], settings: Settings, providers: Sequence[ToolProvider]) -> dict[str, Probe]:
    if settings.tools.no_mcp:
        return unavailable([f"mcp.{server.name}" for server in servers], "switched off by NO_MCP")
    return probes_of(providers)


def _limits(settings: Settings) -> Limits:
    return Limits(
        schema_gate=settings.tools.schema_gate,
        unprotected=settings.tools.unprotected,
        trusted_output=settings.tools.trusted_output,
        untrusted_output=settings.tools.untrusted_output,
        max_value_bytes=settings.tools.max_value_bytes,
        confirm_expires_s=settings.confirm.expires_seconds,
        evidence_inline_bytes=settings.evidence.inline_limit_bytes,
        evidence_raw_bytes=settings.evidence.raw_limit_bytes,
        evidence_items=settings.evidence.max_items_per_report,
        evidence_days=settings.evidence.retention_days,
    )
