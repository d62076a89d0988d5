"""Recipes: which ones this process knows, and what they take."""

from __future__ import annotations

import inspect
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from remit.codes import Code
from remit.jobs.recipe import shown
from remit.operation import WireName, operation

if TYPE_CHECKING:
    from remit.jobs.recipe import Outline, Recipe, Recipes

_LISTS: Final = frozenset({list, tuple, set, frozenset})


class ParameterView(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of a recipe."""

    name: str
    shown: str
    """The parameter as Python writes it: `times: int = 1`."""
    hint: str
    """Its type as the recipe writes it; empty if it has none."""
    default: str | None
    """The default as Python writes it; None: the parameter has to be given."""
    text: bool
    """True where text is taken as it is, and not as JSON."""
    flag: bool
    """True where it says yes or no."""
    many: bool
    """True where it is a list of values."""


class RecipeView(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe."""

    name: str
    about: str
    """Its documentation."""
    execution_version: str
    parameters: tuple[ParameterView, ...]


class RecipeForm(msgspec.Struct, frozen=True):
    """A recipe as a form shows it."""

    schema: dict[str, Any]
    """JSON Schema of its parameters, each described by its own alone: what others refer to is left open."""
    defaults: dict[str, Any]
    """Values of the parameters that have one, as JSON."""


class KnownRecipes:
    """The recipes of this process."""

    def __init__(self, registry: Recipes) -> None:
        self.registry = registry

    # --- queries

    @operation("recipes.page", "GET /v1/recipes", "read", "List recipes.")
    async def views(self) -> list[RecipeView]:
        """List the recipes with their parameters, by name."""
        return [recipe_view(recipe) for recipe in self.registry.all()]

    @operation("recipes.view", "GET /v1/recipes/{recipe}", "read", "Show a recipe.", codes=(Code.UNKNOWN_RECIPE,))
    async def view(self, name: Annotated[str, WireName("recipe")]) -> RecipeView:
        """Show one recipe.

        Raise NotFoundError (UNKNOWN_RECIPE).
        """
        return recipe_view(self.registry.get(name))

    def form(self, name: str) -> RecipeForm:
        """Return what a form of a recipe needs. Raise NotFoundError (UNKNOWN_RECIPE)."""
        recipe = self.registry.get(name)
        parameters = recipe.signature.parameters
        defaults = recipe.defaults
        return RecipeForm(
            schema={
                "type": "object",
                "properties": {parameter: _schema(recipe.hints.get(parameter, Any)) for parameter in parameters},
                "required": [
                    parameter_name
                    for parameter_name, parameter in parameters.items()
                    if parameter.default is parameter.empty
                ],
            },
            defaults={key: value for key, value in defaults.items() if value is not None},
        )

    def names(self) -> list[str]:
        return self.registry.names()

    def outlines(self) -> list[Outline]:
        """Return what a face names and completes, by name."""
        return self.registry.outlines()


def _schema(hint: Any) -> dict[str, Any]:
    """The schema of a parameter: of what it is if it may also be none, with the type that all of its words have."""
    try:
        schema = msgspec.json.schema_components([hint])[0][0]
    except (TypeError, ValueError):  # a type that only Python has
        return {}
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    schema = choices[0] if len(choices) == 1 else schema
    words = schema.get("enum")
    return {"type": "string", **schema} if words and all(isinstance(word, str) for word in words) else schema


def recipe_view(recipe: Recipe[..., Any]) -> RecipeView:
    """A recipe as faces show it."""
    return RecipeView(
        name=recipe.name,
        about=inspect.cleandoc(recipe.__doc__ or ""),
        execution_version=recipe.execution_version,
        parameters=tuple(
            _parameter(parameter, recipe.hints.get(name, Any))
            for name, parameter in recipe.signature.parameters.items()
        ),
    )


def _parameter(parameter: inspect.Parameter, hint: Any) -> ParameterView:
    choices = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    bare = {get_origin(choice) or choice for choice in choices}
    items = {item for choice in choices if get_origin(choice) in _LISTS for item in get_args(choice)}
    written = "" if parameter.annotation is parameter.empty else inspect.formatannotation(parameter.annotation)
    return ParameterView(
        name=parameter.name,
        shown=shown(parameter),
        hint=written.strip("'"),
        default=None if parameter.default is parameter.empty else repr(parameter.default),
        text=str in bare | items,
        flag=bare <= {bool, type(None)},
        many=bool(bare & _LISTS),
    )
