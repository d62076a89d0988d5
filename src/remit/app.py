"""Remit from Python: open it, start jobs, await them, answer their questions.

async with Remit("jobs.db", tools=[charge], recipes=[triage]) as remit:
    job = await remit.start(triage(repo="octo/site"))
    print(await job)
"""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

import msgspec

import remit.wiring.sections  # noqa: F401 - declares the settings of the parts that ship
from remit.codes import Code
from remit.errors import SettingsError, StateError, UsageError
from remit.jobs.state import ENDED, stream_of
from remit.service.handle import JobEndedError, JobHandle, id_of
from remit.settings import Settings, load, override
from remit.settings.loader import CONFIG
from remit.settings.places import data_folder
from remit.trust.state import Register, made_here, missing_journal, standing, untrusted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from remit.capability import Capability, Upkeep
    from remit.clock import Clock
    from remit.engines.port import Engine
    from remit.gateway.outcome import Outcome
    from remit.http.guard import Guard
    from remit.http.people import People
    from remit.http.reader import Reader
    from remit.http.router import PartMount
    from remit.jobs.bound import RecipeCall
    from remit.jobs.end import PassEnd
    from remit.jobs.plans.plan import Plan
    from remit.jobs.recipe import Recipe
    from remit.jobs.replay import ReplayReport
    from remit.record.views import ConfirmationView, JobRow
    from remit.service.options import Options
    from remit.service.service import Service
    from remit.tools.function import FunctionTool
    from remit.tools.listings import ToolVersionRegistry
    from remit.tools.migration import Migration
    from remit.tools.provider import ToolProvider
    from remit.wiring.reload import SettingsDifference
    from remit.wiring.runtime import Report, Runtime

__all__ = ["Job", "JobEndedError", "Remit", "run_sync"]

T = TypeVar("T")

_log: Final = logging.getLogger("remit")
_LOOK_S = 0.5
"""The interval at which a job that another process runs is looked at, should no change be seen."""


def _register() -> Register:
    return Register(data_folder(os.environ) / "trust")


class Job(JobHandle[T]):
    """A job of this journal, wherever it runs. Awaiting it gives its result."""

    def __init__(self, remit: Remit, job: str, recipe: Recipe[..., T] | None = None) -> None:
        super().__init__(remit.service, job, recipe)
        self._runtime = remit.runtime

    async def result(self) -> T:
        from remit.jobs.end import PassEnd

        end = await _end(self._runtime, self.id)
        if isinstance(end, PassEnd):
            return self._typed(msgspec.json.decode(end.encoded))
        return await self._result()


class Remit:
    """One process's hold on a journal: starts jobs, works on them, answers for them.

    It opens nothing before `async with`. `journal` and `policy` stand in for the settings of those names, also of
    `settings`. Those come from `remit.settings.load`; without them, remit.toml and the environment are read. Raises
    SettingsError for a value that does not fit, UsageError for an empty `journal` or `versions` that lack a method.
    `work=False` leaves jobs to other processes. `always_replay` runs every recipe again from its journal after each
    step, for tests. `versions` gives tools their versions where providers give none, and stands in for the journal as
    the registry of what ran.
    """

    def __init__(
        self,
        journal: str | os.PathLike[str] | None = None,
        *,
        tools: Iterable[FunctionTool[..., Any]] = (),
        recipes: Iterable[Recipe[..., Any]] = (),
        providers: Iterable[ToolProvider] = (),
        migrations: Iterable[Migration] = (),
        settings: Settings | None = None,
        policy: Iterable[Mapping[str, Any]] | None = None,
        work: bool = True,
        always_replay: bool = False,
        clock: Clock | None = None,
        report: Report | None = None,
        versions: ToolVersionRegistry | None = None,
    ) -> None:
        flags: dict[str, Any] = {}
        if journal is not None:
            flags["journal.url"] = os.fspath(journal)
            if not flags["journal.url"]:
                raise UsageError("the journal's address is empty", remedy="Name a file or an address, or leave it out.")
        if policy is not None:
            flags["policy.rules"] = [dict(rule) for rule in policy]
        self._are_settings_searched = settings is None
        self._flags = flags
        if settings is None:
            self.settings = self._load()
        elif not isinstance(settings, Settings):
            raise SettingsError(
                "settings are no Settings", remedy="Make them with remit.settings.load(env={}, flags=…)."
            )
        else:
            self.settings = override(settings, flags)
        if versions is not None:
            from remit.tools.listings import require_registry

            require_registry(versions)
        self._tools, self._recipes, self._providers = tuple(tools), tuple(recipes), tuple(providers)
        self._migrations, self._versions, self._clock = tuple(migrations), versions, clock
        self._report, self._work, self._always_replay = report, work, always_replay
        self._runtime: Runtime | None = None
        self._session = ""
        self._opening = asyncio.Lock()

    # --- life

    def __repr__(self) -> str:
        url = self.settings.journal.shown("url")
        return f"<Remit on {url}, {'open' if self._runtime is not None else 'closed'}>"

    async def __aenter__(self) -> Self:
        """Open the journal and begin to work. Raises JournalError, SettingsError or UsageError.

        A remit.toml that was found, not given, has to be trusted (`remit trust`): FOLDER_NOT_TRUSTED. With `:memory:`,
        what would need trust in one that REMIT_CONFIG does not name is ignored instead.
        """
        from remit.wiring.journal import find_key, make_key
        from remit.wiring.runtime import open_runtime

        register = _register()
        if self._are_settings_searched and not (trust_state := standing(self.settings, register, os.environ)).trusted:
            raise untrusted(trust_state)
        missing = missing_journal(self.settings, os.environ)
        if missing is not None:
            make_key(self.settings)
        self._runtime = open_runtime(
            self.settings,
            tools=self._tools,
            recipes=self._recipes,
            providers=self._providers,
            migrations=self._migrations,
            clock=self._clock,
            report=self._report,
            versions=self._versions,
            step_by_step=self._always_replay,
            on_use=not self._work,
        )
        if missing is not None:
            made_here(missing, register)
        try:
            await find_key(self._runtime.journal, self.settings)
            if self._work:
                self._runtime.journal.require_key()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        if self._work:
            self._runtime.engine.start(role="" if self.settings.journal.url == ":memory:" else "python")
        return self

    def _load(self) -> Settings:
        """Return the settings that were found; in memory, without what needs trust and has none: no cell shows it."""
        read = partial(load, cwd=Path.cwd(), env=os.environ, flags=self._flags, guarded=True)
        settings = read()
        if self._flags.get("journal.url") != ":memory:" or os.environ.get(CONFIG):
            return settings
        if (trust_state := standing(settings, _register(), os.environ)).trusted:
            return settings
        _log.warning("%s", trust_state.ignored)
        return read(doubted=trust_state.keys)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        runtime, self._runtime, self._session = self.runtime, None, ""
        await runtime.close()

    async def reread(
        self, settings: Settings, arrived: Callable[[str], None] = lambda _server: None
    ) -> SettingsDifference:
        """Run with these settings from now on, as far as that needs no restart, and return the difference.

        `arrived` is told the name of each MCP server that is added, before it is connected. Whether the file is trusted
        is the caller's to ask. Raises SettingsError, PolicyError, NameInvalidError or UsageError, having changed
        nothing, and JournalError.
        """
        from remit.wiring.reload import reread

        difference = await reread(self.runtime, settings, arrived)
        self.settings = self.runtime.settings
        return difference

    @property
    def runtime(self) -> Runtime:
        """The parts, for who needs them. Raises StateError outside `async with`."""
        if self._runtime is None:
            raise StateError(
                "Remit is not open", code=Code.JOURNAL_CLOSED, remedy="Use it within `async with Remit(…) as remit:`."
            )
        return self._runtime

    @property
    def service(self) -> Service:
        return self.runtime.service

    @property
    def engine(self) -> Engine:
        """Return what works on jobs in this process."""
        return self.runtime.engine

    @property
    def parts(self) -> tuple[Capability, ...]:
        return self.runtime.parts

    @property
    def awaited(self) -> set[str]:
        """The streams of jobs that requests of this process wait for: an engine may work on these alone."""
        return self.runtime.worker.awaited

    def beside(self, stop: asyncio.Event, role: Literal["serve", "worker"]) -> list[Upkeep]:
        """Return what parts do beside a server or a worker, until `stop`. Raises UsageError or SettingsError."""
        from remit.wiring.parts import works_of

        return works_of(self.parts, self, stop, role)

    def sending(self) -> AbstractAsyncContextManager[None]:
        """Let parts send elsewhere what is recorded within the block. Raises UsageError."""
        from remit.wiring.parts import sending_of

        return sending_of(self.parts, self)

    def mounts(self, guard: Guard) -> list[PartMount]:
        """Return what parts answer at paths of their own in a server. Raises UsageError or SettingsError."""
        from remit.wiring.parts import mounts_of

        return mounts_of(self.parts, self, guard)

    @property
    def people(self) -> People | None:
        """Everyone who logs in at a provider; None: no one does."""
        return self.runtime.people

    def readers(self) -> tuple[Reader, ...]:
        """Return what parts tell of every answer over HTTP. Raises UsageError or SettingsError."""
        from remit.wiring.parts import readers_of

        return readers_of(self.parts, self.runtime)

    @property
    def clock(self) -> Clock:
        """The clock that the journal is written by."""
        return self.runtime.journal.clock

    @property
    def url(self) -> str:
        return self.runtime.journal.url

    # --- jobs

    async def start(self, bound: RecipeCall[T], options: Options | None = None) -> Job[T]:
        """Create a job that runs a recipe with its arguments; it is durable when this returns."""
        from remit.jobs.recipe import recipe_of

        return Job(self, await self.service.jobs.start(bound, options), recipe_of(bound))

    async def start_plan(
        self, plan: Plan, inputs: Mapping[str, Any] | None = None, options: Options | None = None
    ) -> Job[Any]:
        """Create a job that carries out a task graph."""
        return Job(self, await self.service.jobs.start_plan(plan, inputs or {}, options))

    async def run(self, bound: RecipeCall[T], options: Options | None = None) -> T:
        """Start a job and wait for its result. Raises JobEndedError where it failed or was cancelled."""
        return await (await self.start(bound, options))

    def job(self, job: str) -> Job[Any]:
        """A job by its identifier."""
        return Job(self, job)

    async def jobs(self, *states: str, limit: int = 20) -> list[JobRow]:
        """Jobs in these states, or all, newest first."""
        return await self.service.jobs.rows(states, limit=limit)

    async def ended(self, job: str | Job[Any]) -> JobRow:
        from remit.jobs.end import PassEnd

        end = await _end(self.runtime, id_of(job))
        return await self.service.jobs.row(id_of(job)) if isinstance(end, PassEnd) else end

    async def settled(self, *jobs: str | Job[Any], labels: Mapping[str, str] | None = None) -> list[JobRow]:
        """Wait until every one of these jobs, or of those with these labels, has ended or waits for someone.

        Raises NotFoundError or JournalError.
        """
        return await self.service.jobs.settled([id_of(job) for job in jobs] or None, labels=labels)

    async def replay(self, job: str | Job[Any], *, anyway: bool = False) -> ReplayReport:
        """Run a job's recipe again on its record alone: no tool is called, and the first difference is reported."""
        return await self.service.jobs.replay(id_of(job), anyway=anyway)

    async def questions(self, job: str | Job[Any]) -> AsyncIterator[ConfirmationView]:
        """Every question of a job to a person, as it comes up, until the job has ended."""
        name = id_of(job)
        yielded: set[str] = set()
        mark = 0
        while True:
            mark = await self.runtime.journal.changed(mark)
            row = await self.service.jobs.row(name)
            for question in await self.service.confirmations.pending(name):
                if question.confirmation not in yielded:
                    yielded.add(question.confirmation)
                    yield question
            if row.state in ENDED:
                return

    # --- single calls

    async def call(
        self, tool: str, args: dict[str, Any] | None = None, *, timeout: float | None = None, key: str = ""
    ) -> Outcome:
        """Call one tool outside any job, through the same gate; it is recorded in this process's session.

        With an idempotency `key` the call is made once; whichever process makes it again gets the recorded outcome.
        A `pending` call waits for a person: make the same call again once it is decided.
        """
        from remit.record.outcome import outcome_of

        sessions = self.service.sessions
        session = self._session or await self._open_session()
        return outcome_of(await sessions.call(session, tool, args, key=key, timeout_s=timeout))

    async def _open_session(self) -> str:
        async with self._opening:
            if not self._session:
                self._session = await self.service.sessions.open("python")
        return self._session


def run_sync(bound: RecipeCall[T], remit: Remit | None = None, options: Options | None = None) -> T:
    """Open a Remit, run a recipe with its arguments to its end, and close: for a script without an event loop.

    `remit` is one that is not open, such as `Remit("jobs.db", tools=[charge])`; without it, `Remit()`. Raises
    UsageError where an event loop runs, JobEndedError where the job failed or was cancelled, and what opening raises.
    """
    if asyncio._get_running_loop() is not None:  # noqa: SLF001 - the question without an exception for its answer
        raise UsageError("remit.run_sync was called where an event loop runs", remedy="Use `await remit.run(…)` there.")
    return asyncio.run(_run_once(bound, remit or Remit(), options))


async def _run_once(bound: RecipeCall[T], remit: Remit, options: Options | None) -> T:
    async with remit as opened:
        return await opened.run(bound, options)


async def _end(runtime: Runtime, job: str) -> PassEnd | JobRow:
    """Wait until a job has ended; where it completed in this process, what it returned, without reading it again."""
    engine = runtime.engine
    while True:
        future = engine.ended(stream_of(job))
        try:
            row = await runtime.service.jobs.row(job)
            if row.state in ENDED:
                return row
            if engine.failure is not None:
                raise engine.failure
            await asyncio.wait([future], timeout=_LOOK_S)
            if future.done() and future.result().how == "completed":
                return future.result()
        finally:
            future.cancel()
