"""Everything of one process: settings in, a working runtime out. The CLI, servers and tests use it.

A runtime is opened by degrees. The journal is opened at once; every other part is made when it is first used, and
imported then: a list of jobs needs the journal alone, a list of tools the catalog, which starts nothing, and only who
runs something makes the engine. `open_runtime` makes all of them, unless it is told to make them on use.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec

from remit.clock import SystemClock
from remit.settings.principal import principal
from remit.wiring.journal import open_journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remit.capability import Capability, Opening
    from remit.clock import Clock
    from remit.engines.local import LocalEngine
    from remit.engines.port import Engine, Work
    from remit.gateway.confirmations import FindStandIns
    from remit.gateway.pipeline import Gateway
    from remit.gateway.readiness import Probe
    from remit.gateway.services import Services
    from remit.http.people import People
    from remit.jobs.program import Programs
    from remit.jobs.recipe import Recipe
    from remit.jobs.skills import Skills
    from remit.journal.journal import Journal
    from remit.policy.rules import Policy
    from remit.process.enclosure import Enclosures
    from remit.randomness import RandomSource
    from remit.service.modules import ModuleContents
    from remit.service.parts import Worker
    from remit.service.service import Service
    from remit.settings import Settings
    from remit.settings.mcp import McpServer
    from remit.tools.catalog import Catalog
    from remit.tools.function import FunctionTool
    from remit.tools.listings import ToolVersionRegistry
    from remit.tools.meta import ToolMeta
    from remit.tools.migration import Migration, Migrations
    from remit.tools.pins import Pins
    from remit.tools.provider import ToolProvider
    from remit.tools.remote import Authorizer

    Report = Callable[[str, float | None, float | None, str], None]


class Additions(msgspec.Struct, frozen=True):
    """The additions of a program beside what the settings name."""

    tools: tuple[FunctionTool[..., Any], ...] = ()
    recipes: tuple[Recipe[..., Any], ...] = ()
    providers: tuple[ToolProvider, ...] = ()
    migrations: tuple[Migration, ...] = ()
    chance: RandomSource | None = None
    report: Report | None = None
    step_by_step: bool = False
    authorizer: Authorizer | None = None
    versions: ToolVersionRegistry | None = None


class Runtime:
    """The parts of one process. What was made decides what is closed."""

    def __init__(self, settings: Settings, journal: Journal, additions: Additions) -> None:
        self.settings = settings
        self.journal = journal
        self._additions = additions

    def make(self) -> None:
        """Make every part."""
        for parts in (self, self.services):
            for name, part in vars(type(parts)).items():
                if isinstance(part, cached_property):
                    getattr(parts, name)

    def read(self) -> None:
        """Make what the settings and the program bring something to, so that what is wrong with it shows now."""
        brought, settings = self._additions, self.settings
        for bringing, parts, name in (
            (settings.app.modules, self, "modules"),
            (settings.app.capabilities, self, "parts"),
            (settings.policy.rules, self.services, "policy"),
            (brought.tools or brought.providers, self, "catalog"),
            (brought.recipes, self, "programs"),
        ):
            if bringing:
                getattr(parts, name)

    async def close(self) -> None:
        """Let calls under way end, give jobs up, close providers and the journal."""
        made = vars(self)
        if "engine" in made:
            await self.engine.drain(self.settings.jobs.drain_seconds)
            await self.engine.stop()
        if "catalog" in made:
            await self.catalog.close()
        if "enclosures" in made:
            await self.enclosures.close()
        if "services" in made and (models := vars(self.services).get("models")) is not None:
            await models.close()
        await self.journal.close()

    # --- what the settings and the program bring

    @cached_property
    def modules(self) -> ModuleContents:
        """Return what the user's modules define. Raises UsageError."""
        from remit.service.modules import find

        return find(self.settings.app.modules, self.settings.folder)

    @cached_property
    def parts(self) -> tuple[Capability, ...]:
        from remit.wiring.parts import parts_of

        return parts_of(self.settings)

    @cached_property
    def servers(self) -> tuple[McpServer, ...]:
        """The MCP servers that are not disabled."""
        from remit.wiring.providers import servers_of

        return servers_of(self.settings)

    @cached_property
    def providers(self) -> tuple[ToolProvider, ...]:
        """Every source of tools but jobs."""
        from remit.wiring.parts import named_parts, providers_of

        opened = providers_of(named_parts(self.parts, self.settings.tools.only), self.opening())
        return (*opened, *self.modules.providers, *self._additions.providers)

    @property
    def unlisted(self) -> tuple[ToolMeta, ...]:
        """The tools that rules may name and no catalog lists. Raises UsageError."""
        from remit.wiring.parts import unlisted_of

        return unlisted_of(self.parts)

    @cached_property
    def programs(self) -> Programs:
        """Return what jobs run: every recipe, and plans from their record."""
        from remit.jobs.program import Programs
        from remit.jobs.recipe import Recipes
        from remit.wiring.listing import outlines_of
        from remit.wiring.parts import recipes_of

        own, version = (*self.modules.recipes, *self._additions.recipes), self.settings.jobs.code_version
        return Programs(self.journal, Recipes(own, version, recipes_of(self.parts), outlines_of(self.parts)))

    # --- what they are made into

    @cached_property
    def chance(self) -> RandomSource:
        from remit.randomness import SystemRandomSource

        return self._additions.chance or SystemRandomSource()

    @cached_property
    def pins(self) -> Pins:
        from remit.tools.pins import Pins

        trust = self.settings.mcp.first_use == "trust"
        return Pins(self.journal, trust=trust, principal=principal(self.settings))

    @cached_property
    def skills(self) -> Skills:
        """Return what knows the skills of this process. Raises SettingsError."""
        from remit.wiring.parts import skills_of

        return skills_of(self.parts, self)

    @cached_property
    def people(self) -> People | None:
        """Everyone who logs in at a provider; None: no one does. Raises SettingsError."""
        from remit.wiring.parts import people_of

        return people_of(self.parts, self)

    @cached_property
    def stand_ins(self) -> FindStandIns | None:
        """Return who stands in for whom; None: no one does. Raises SettingsError."""
        from remit.wiring.parts import stand_ins_of

        return stand_ins_of(self.parts, self)

    @cached_property
    def enclosures(self) -> Enclosures:
        """Return what runs the operator's own programs in the sandbox."""
        from remit.wiring.parts import enclosures_of

        return enclosures_of(self.parts, self.settings)

    @cached_property
    def catalog(self) -> Catalog:
        """All tools; nothing is started before they are listed. Raises NameInvalidError."""
        from remit.service.job_tools import JobsProvider
        from remit.tools.catalog import Catalog

        tools = self.settings.tools
        catalog = Catalog(
            self.providers,
            order=tools.preferred_provider_order,
            choose=tools.choose,
            closed=tools.schema_gate != "off",
            versions=self._additions.versions,
        )
        catalog.add(JobsProvider(self.service, self.settings.mcp.expose, self.settings.mcp.untrusted_input))
        return catalog

    @cached_property
    def versions(self) -> ToolVersionRegistry:
        """Return what knows the versions of tools: the program's own registry, or the journal."""
        from remit.record.uses import JournalVersions

        return self._additions.versions or JournalVersions(self.journal)

    @cached_property
    def services(self) -> Services:
        from remit.wiring.services import Sources, services_of

        sources = Sources(
            lambda: self.catalog,
            self._policy,
            self._migrations,
            self.probes,
            lambda: self.people,
            lambda: self.stand_ins,
        )
        return services_of(self.settings, self.journal, sources)

    @cached_property
    def gateway(self) -> Gateway:
        """The one door for calls (rule 1)."""
        from remit.gateway.pipeline import Gateway

        return Gateway(self.services)

    @cached_property
    def engine(self) -> LocalEngine:
        """Return what works on jobs here, once it is started."""
        from remit.engines.presence import with_code
        from remit.jobs.runner import JobRunner
        from remit.jobs.versions import Versions
        from remit.journal.leases import Owner, alive
        from remit.wiring.parts import engine_of

        jobs, migrations = self.settings.jobs, self.services.migrations
        runner = JobRunner(
            journal=self.journal,
            gateway=self.gateway,
            programs=self.programs,
            versions=Versions(self.journal, self.catalog, jobs.mismatch, migrations, self.skills),
            max_value_bytes=self.settings.tools.max_value_bytes,
            chance=self.chance,
            report=self._additions.report or (lambda _job, _done, _total, _message: None),
            worker=Owner.this().words,
            alive=alive,
            with_code=partial(with_code, self.journal),
            skills=self.skills,
            step_by_step=self._additions.step_by_step,
        )
        return engine_of(self.parts, self.settings, runner)

    def engine_for(self, work: Work, *, concurrency: int) -> Engine:
        """Make what works on another kind of stream than jobs."""
        from remit.engines.local import LocalEngine

        return LocalEngine(work, concurrency=concurrency, lease_s=self.settings.jobs.lease_seconds)

    @cached_property
    def worker(self) -> Worker:
        """Return what works on jobs here, for who waits for them."""
        from remit.service.parts import Worker

        return Worker(self._wake, self._working)

    @cached_property
    def service(self) -> Service:
        """Everything that a face may do."""
        from remit.service.local import service_over

        return service_over(self, principal=principal(self.settings), worker=self.worker)

    def _wake(self) -> None:
        if "engine" in vars(self):  # one that was never made waits for nothing
            self.engine.wake()

    def _working(self) -> bool:
        return "engine" in vars(self) and self.engine.working

    def opening(self) -> Opening:
        """Return what providers are opened with."""
        from remit.capability import Opening
        from remit.service.door import SessionDoor
        from remit.threads import Threads
        from remit.wiring.parts import front_of
        from remit.wiring.providers import decisive, private

        opening = Opening(
            settings=self.settings,
            tools=(*self.modules.tools, *self._additions.tools),
            servers=self.servers,
            pins=self.pins,
            journal=self.journal,
            clock=self.journal.clock,
            chance=self.chance,
            threads=Threads(self.settings.jobs.concurrency),
            enclosures=lambda: self.enclosures,
            skills=lambda: self.skills,
            authorizer=self._additions.authorizer,
            door=SessionDoor(self.journal, lambda: self.service),
            private=private(self.settings),
            decisive=decisive(self.settings),
            front=lambda: front_of(self.parts, opening),
        )
        return opening

    def _policy(self) -> Policy:
        from remit.wiring.services import policy_of

        return policy_of(self.settings)

    def _migrations(self) -> Migrations:
        from remit.tools.migration import Migrations

        return Migrations((*self.modules.migrations, *self._additions.migrations))

    def probes(self) -> dict[str, Probe]:
        """Return what tells whether each provider of the catalog is ready."""
        from remit.wiring.providers import probes_for

        return probes_for(self.servers, self.settings, self.catalog.providers)


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
    versions: ToolVersionRegistry | None = None,
    on_use: bool = False,
) -> Runtime:
    """Open the journal and wire everything; call it on a running event loop.

    `authorizer` lets a person log in where an MCP server wants that; `versions` stands in for the journal as the
    registry of tools' versions. With `on_use` the journal is opened, what the
    settings and the arguments bring is read, and everything else is made when it is first used. Raises JournalError,
    NameInvalidError, SettingsError or UsageError.
    """
    additions = Additions(
        tuple(tools),
        tuple(recipes),
        tuple(providers),
        tuple(migrations),
        chance,
        report,
        step_by_step,
        authorizer,
        versions,
    )
    journal = open_journal(settings, clock or SystemClock())
    runtime = Runtime(settings, journal, additions)
    if on_use:
        runtime.read()
    else:
        runtime.make()
    return runtime
