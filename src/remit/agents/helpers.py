"""Recipes as tools of an agent: each runs as a part of the agent's own job, so its effects are recorded there."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import RunError, SchemaError, UsageError
from remit.gateway.conversation import values_of
from remit.gateway.outcome import Outcome, failed, refused
from remit.jobs.bound import RecipeCall
from remit.jobs.branch import asking
from remit.jobs.ended import FATAL
from remit.jobs.results import CallError
from remit.jobs.run import AGENT
from remit.models.prompt import ToolSpec
from remit.record.results import RUN
from remit.tools import hints

if TYPE_CHECKING:
    from remit.gateway.conversation import Conversation
    from remit.jobs.bound import RecipeDefinition
    from remit.jobs.run import Run

RECORDED: Final = "refusals of the agent are recorded"
"""The change after which a call that an agent itself refuses is a step; older jobs have none of it."""


class Helpers:
    """The recipes that one agent may run."""

    def __init__(self, run: Run, patterns: tuple[str, ...]) -> None:
        self._run = run
        self._recipes: dict[str, RecipeDefinition[Any]] = {}
        self.specs: list[ToolSpec] = []
        """The tools as they are offered."""
        for name in run.recipes.names() if patterns else ():
            if name != AGENT and any(fnmatchcase(name, pattern) for pattern in patterns):
                self._offer(run.recipes.get(name))

    def _offer(self, recipe: RecipeDefinition[Any]) -> None:
        try:
            schema = hints.read(recipe.function, leading=1).input_schema
        except SchemaError:  # as with recipes that clients may start: what has no schema is not offered
            return
        told = " ".join((recipe.function.__doc__ or "").partition("\n\n")[0].split())
        tool = RUN + recipe.name.replace(".", "__")
        self._recipes[tool] = recipe
        self.specs.append(
            ToolSpec(name=tool, description=told or f"Runs the recipe {recipe.name}.", schema=schema or {})
        )

    def has(self, tool: str) -> bool:
        """Return whether a tool, by the name that models see, is one of these."""
        return tool in self._recipes

    async def run(self, tool: str, args: dict[str, Any], told: Conversation) -> Outcome:
        """Run a recipe to its end for a model that was `told` so much; what it fails with is the outcome."""
        recipe = self._recipes[tool]
        try:
            recipe.arguments(args)
        except UsageError as error:
            outcome = refused(Code.INVALID_TOOL_ARGS, error.message, error.remedy)
            if await self._run.patched(RECORDED):
                await self._run.attempt(tool.replace("__", "."), args, conversation=told, barred=outcome)
            return outcome
        token = asking.set(msgspec.structs.replace(told, call="", given=values_of(args)))
        try:
            value = await self._run.child(RecipeCall(recipe, args))
        except CallError as error:
            return error.outcome
        except (RunError, UsageError) as error:
            if error.code in FATAL:
                raise
            return failed(error.code, error.message, error.remedy)
        finally:
            asking.reset(token)
        return Outcome(status="ok", value=hints.to_json(value))
