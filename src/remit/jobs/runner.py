"""Jobs as the work of an engine (engines/port.py)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Final

from remit.jobs.execution import JobExecution, JobServices
from remit.jobs.routes import of_tools, of_version, unkept
from remit.jobs.skills import NO_SKILLS
from remit.jobs.state import KIND
from remit.journal.event import HeadPatch

if TYPE_CHECKING:
    from remit.gateway.pipeline import Gateway
    from remit.jobs.program import Programs
    from remit.jobs.skills import Skills
    from remit.jobs.versions import Versions
    from remit.journal.event import Lease
    from remit.journal.journal import Journal
    from remit.randomness import RandomSource

_PATIENCE_S: Final = 5.0
"""Seconds that a server which was down gets to list its tools."""


class JobRunner:
    """Runs leased jobs with the services of this process.

    `report` is called with job, done, total and message; `worker` is this process in words. `step_by_step` ends
    executions after each effect.
    """

    kind: Final = KIND
    """The kind of the streams it works on."""

    def __init__(
        self,
        *,
        journal: Journal,
        gateway: Gateway,
        programs: Programs,
        versions: Versions,
        max_value_bytes: int,
        chance: RandomSource,
        report: Callable[[str, float | None, float | None, str], None],
        worker: str = "this process",
        alive: Callable[[str], bool] = lambda _owner: False,
        with_code: Callable[[str, str, str], Awaitable[str]] | None = None,
        skills: Skills = NO_SKILLS,
        step_by_step: bool = False,
    ) -> None:
        self.journal = journal
        self._services = JobServices(
            journal=journal,
            gateway=gateway,
            programs=programs,
            versions=versions,
            max_value_bytes=max_value_bytes,
            chance=chance,
            report=report,
            worker=worker,
            alive=alive,
            with_code=with_code or _no_one,
            skills=skills,
            step_by_step=step_by_step,
        )

    @property
    def routes(self) -> tuple[str, ...]:
        """Jobs for everyone, and those of the recipes that are known here."""
        return ("", *self._services.programs.recipes.names())

    @property
    def code(self) -> dict[str, tuple[str, ...]]:
        """The recipes that run here, with the execution versions that they run as."""
        recipes = self._services.programs.recipes
        versions: dict[str, tuple[str, ...]] = {recipe.name: (recipe.execution_version,) for recipe in recipes.all()}
        for name, version in sorted(recipes.carries()):
            versions[name] = tuple(dict.fromkeys((*versions[name], version)))
        return versions

    async def late_routes(self) -> tuple[str, ...]:
        """The versions and the tools that are here: jobs may have been left to those who have them.

        Servers that a job missed are asked again whether they are up.
        """
        catalog = self._services.gateway.services.catalog
        if self._services.lacked and catalog.failures:
            for provider_id in list(catalog.failures):
                catalog.invalidate(provider_id)
            await catalog.tools(_PATIENCE_S)
        recipes = self._services.programs.recipes
        versions = {of_version(name, version) for name, version in recipes.carries()}
        return tuple(sorted(versions | await of_tools(catalog)))

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have `changed` called when there may be other tools; returns what ends that."""
        return self._services.gateway.services.catalog.watch(changed)

    async def left_routes(self, owner: str, served: Collection[str]) -> dict[str, str]:
        """Routes of jobs that others than `owner` keep and that `served` could take, with those others."""
        every = {route: unkept(route) for route in await self.journal.routes(KIND)}
        return {
            route: keeper for route, (public, keeper) in every.items() if keeper not in {"", owner} and public in served
        }

    def take(self, lease: Lease, keeper: str = "") -> JobExecution:
        """An execution of a job that was just leased; the job is kept for the process of `keeper` while it waits."""
        return JobExecution(self._services, lease, keeper)

    async def let_go(self, stream: str, owner: str) -> None:
        """Let any worker take a job that was kept for the process of `owner`, unless someone has it."""
        head = await self.journal.head(stream)
        while head is not None and not head.closed and head.lease_owner is None:
            public, keeper = unkept(head.route)
            writer = self.journal.writer(head.stream, head.kind, head)
            if keeper != owner or await self.journal.park(writer, HeadPatch(route=public), seen_wakes=head.wakes):
                return
            head = await self.journal.head(stream)


async def _no_one(_recipe: str, _version: str, _but: str) -> str:
    return ""
