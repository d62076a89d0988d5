"""Programs that can be run: recipes by name, recipes in a Python file, plans in the folder."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.cli import exit_codes
from remit.cli.output import reserved_stdout
from remit.codes import Code
from remit.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from remit.cli.context import CommandState
    from remit.service.recipes import RecipeView

_PLANS: Final = (".yaml", ".yml", ".json")
_MARK: Final = b"taskgraph-v1"
_BEGINNING: Final = 4096
"""Bytes of a file within which a plan says that it is one."""
_OPTIONAL: Final = 3
"""Parameters with a default that a list shows."""
_MOST: Final = 10_000
_ABOUT: Final = 200
"""Characters that a list shows of what a recipe does."""


def from_module(state: CommandState, name: str) -> str:
    """The recipe that `FILE.py` or `FILE.py:RECIPE` names, whose file counts from now on; any other name as it is.

    Raises UsageError if the file cannot be imported, or has no such recipe, or several and none was chosen.
    """
    file, _, wanted = name.rpartition(":") if ".py:" in name else (name, "", "")
    if not file.endswith(".py"):
        return name
    if state.server:
        raise UsageError(f"{file}: a server runs its own recipes", remedy="Name one of them, or leave out --server.")
    if not Path(file).is_file():
        raise UsageError(f"{file} is not there", code=Code.MODULE_UNLOADABLE, remedy="Check the path.")
    recipes = _recipes_of(state, file)
    if file not in state.modules:
        state.modules.append(file)
    if wanted:
        if wanted in recipes:
            return wanted
        raise UsageError(f"{file} has no recipe {wanted!r}", code=Code.UNKNOWN_RECIPE, remedy=_known(recipes))
    if not recipes:
        remedy = "Decorate an async function with @recipe(…): docs/recipes.md."
        raise UsageError(f"{file} has no recipe", code=Code.UNKNOWN_RECIPE, remedy=remedy)
    if len(recipes) > 1:
        remedy = f"Choose one, such as {file}:{recipes[0]}. {_known(recipes)}"
        raise UsageError(f"{file} has {len(recipes)} recipes", code=Code.UNKNOWN_RECIPE, remedy=remedy)
    return recipes[0]


def count_in_files_of(state: CommandState, references: Sequence[str], states: tuple[str, ...] = ()) -> None:
    """Let the files count that jobs came from (`remit run FILE.py`), where they lie in this folder and it is trusted.

    The record names them, so it has to be the folder's own: of one that came from elsewhere nothing is run.
    """
    from remit.cli.runner import run_to_end
    from remit.cli.trust_question import standing_of
    from remit.trust.state import own_journal

    settings = state.settings()
    if state.server or own_journal(settings) is None or not standing_of(settings, trusted=state.trust).trusted:
        return

    async def files() -> set[str]:
        async with state.remit(code="unused") as remit:
            jobs = [row.job for row in await remit.service.jobs.rows(states, limit=_MOST)] if states else []
            for reference in references:
                with suppress(NotFoundError):  # the command itself says so
                    jobs.append(await remit.service.jobs.find(reference))
            created = [(await remit.service.jobs.history(job, 1)).created for job in jobs]
        return {event.module for event in created if event is not None}

    for file in sorted(run_to_end(files()) - {""}):
        if Path(file).is_file() and Path(file).is_relative_to(settings.folder) and file not in state.modules:
            state.modules.append(file)


def _recipes_of(state: CommandState, file: str) -> list[str]:
    from remit.service.modules import find

    # The person named the file, so it may run; the folder's own modules are trusted or refused when the job starts.
    settings = state.settings()
    with reserved_stdout():
        return [recipe.name for recipe in find([str(Path(file).absolute())], settings.folder).recipes]


def _known(names: list[str]) -> str:
    return f"It has: {', '.join(names)}." if names else "It has none."


def list_runnable(state: CommandState, folder: Path) -> int:
    """List the recipes, and the plans in a folder; the exit status."""
    recipes, plans = recipe_views(state), plans_in(folder)
    if state.as_json:
        state.output.json({"recipes": recipes, "plans": plans})
        return exit_codes.OK
    show_recipes(state, _for_people(recipes))
    if plans:
        state.output.out.line()
        state.output.out.line(state.output.out.style("PLAN", "dim"))
        for plan in plans:
            state.output.out.line(plan)
    state.note("Run one: remit run NAME --PARAMETER VALUE. `remit run NAME --help` explains its parameters.")
    return exit_codes.OK


def _for_people(recipes: list[RecipeView]) -> list[RecipeView]:
    """Return what people run, their own first: not what other commands start."""
    from remit.wiring.capabilities import FIRST_PARTY

    ships = {reference.rpartition(":")[2] for part in FIRST_PARTY for reference in part.recipes}
    inner = {name for part in FIRST_PARTY for name in part.inner_recipes}
    return sorted((recipe for recipe in recipes if recipe.name not in inner), key=lambda recipe: recipe.name in ships)


def recipe_views(state: CommandState) -> list[RecipeView]:
    """Every recipe, by name."""
    with reserved_stdout():
        return state.ask(lambda remit: remit.service.recipes.views(), blank=True)


def recipe_view(state: CommandState, name: str) -> RecipeView:
    """One recipe. Raises NotFoundError (UNKNOWN_RECIPE)."""
    with reserved_stdout():
        return state.ask(lambda remit: remit.service.recipes.view(name), blank=True)


def show_recipes(state: CommandState, recipes: list[RecipeView]) -> None:
    """A table of recipes: what each takes, and what it does."""
    from remit.cli.tables import TableColumn, table

    columns = ("RECIPE", TableColumn("PARAMETERS", whole=False), TableColumn("WHAT IT DOES", whole=False))
    rows = [(recipe.name, _parameters(recipe), recipe.about.partition("\n")[0][:_ABOUT]) for recipe in recipes]
    table(state.output.out, columns, rows)


def _parameters(recipe: RecipeView) -> str:
    """Return what a recipe takes, as options; what may be left out in brackets, and of that only the first few."""
    shown = [(f"--{parameter.name.replace('_', '-')}", parameter.default is None) for parameter in recipe.parameters]
    needed = [word for word, required in shown if required]
    others = [f"[{word}]" for word, required in shown if not required]
    return " ".join([*needed, *others[:_OPTIONAL], *(["[…]"] if len(others) > _OPTIONAL else [])])


def plans_in(folder: Path) -> list[str]:
    """The files of a folder that say they are plans; one that cannot be read is none."""
    paths = (path for path in sorted(folder.iterdir()) if path.suffix in _PLANS and path.is_file())
    return [str(path) for path in paths if _MARK in _beginning(path)]


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_BEGINNING)
    except OSError:
        return b""
