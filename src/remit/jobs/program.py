"""The program of a job: the recipe its record names, or the plan its record holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.errors import NotFoundError, PlanError, RunError, UsageError, VersionError
from remit.jobs.recipe import Recipe, Recipes
from remit.jobs.routes import LackingError
from remit.jobs.state import JobHistory
from remit.version import __version__

if TYPE_CHECKING:
    from remit.jobs.run import Run
    from remit.journal.journal import Journal

PLANNER_VERSION = f"remit-{__version__}"
"""The planner: graphs are written by people and carried out by this version."""
_REMEDY: Final = "Resume the job where matching code runs, or cancel it."


class JobProgram(msgspec.Struct, frozen=True):
    """A job's code, ready to start from the beginning."""

    name: str
    version: str
    start: Callable[[Run], Awaitable[Any]]
    recipes: Recipes
    """The recipes that it may run as a part of itself, as far as this process knows."""
    admitted: frozenset[str]
    """Recipes whose run types were looked at when the job was created."""
    runs: Callable[[str], bool]
    """Whether it is the code of a recorded execution version."""
    migrates: Callable[[str], bool]
    """Whether it continues jobs of a recorded execution version that is another."""


class Programs:
    """Finds the code of recorded jobs."""

    def __init__(self, journal: Journal, recipes: Recipes) -> None:
        self._journal = journal
        self.recipes = recipes

    async def load(self, history: JobHistory) -> JobProgram:
        """The program of a job. Raises LackingError (UNKNOWN_RECIPE) or VersionError: other code may fit.

        Raises RunError if the job's plan is not recorded.
        """
        created = history.created
        if created is None:
            raise VersionError("the job's first event is missing", remedy="Run `remit verify` on it.")
        encoded = await self._journal.value(created.input, created.input_blob)
        inputs = msgspec.json.decode(encoded) if encoded is not None else {}
        if created.kind == "plan":
            return await self._plan(history, inputs)
        recipe = self._recipe(created.name, history.execution)
        try:
            arguments = recipe.arguments(inputs)
        except UsageError as error:
            msg = f"the recorded input does not fit today's recipe: {error.message}"
            raise VersionError(msg, remedy=f"{error.remedy} {_REMEDY}") from error
        return JobProgram(
            name=recipe.name,
            version=recipe.execution_version,
            start=lambda run: recipe.function(run, **arguments),
            recipes=self.recipes,
            admitted=frozenset({recipe.name}),
            runs=recipe.runs,
            migrates=recipe.migrates,
        )

    def _recipe(self, name: str, recorded: str = "") -> Recipe[..., Any]:
        try:
            return self.recipes.get(name, recorded)
        except NotFoundError as error:
            raise LackingError(error.message, route=name, code=error.code, remedy=error.remedy) from error

    async def _plan(self, history: JobHistory, args: dict[str, Any]) -> JobProgram:
        recorded = history.plan
        if recorded is None:
            # Contract: a job without a plan where one is expected fails; it is never planned twice.
            raise RunError("the job's plan is not recorded", remedy="Start a new job from the file.")
        from remit.jobs.plans.check import read_plan  # noqa: PLC0415 - few jobs are plans
        from remit.jobs.plans.graph import run_plan  # noqa: PLC0415 - the same
        from remit.jobs.plans.plan import Child, upgraded  # noqa: PLC0415 - the same

        encoded = await self._journal.value(recorded.task_graph, recorded.task_graph_blob)
        graph = upgraded(msgspec.json.decode(encoded or b"null"), recorded.schema_version)
        try:
            plan = read_plan(graph)
        except PlanError as error:
            raise VersionError(
                f"this version cannot read the recorded plan: {error.message}", remedy=_REMEDY
            ) from error
        named = frozenset(node.action.recipe for node in plan.nodes if isinstance(node.action, Child))
        for name in sorted(named):
            self._recipe(name)  # without it nothing of the plan is done here
        return JobProgram(
            name=plan.name or "plan",
            version=PLANNER_VERSION,
            start=lambda run: run_plan(run, plan, args, self.recipes, history.children),
            recipes=self.recipes,
            admitted=named,
            runs=lambda recorded: recorded == PLANNER_VERSION,
            migrates=lambda _recorded: False,
        )
