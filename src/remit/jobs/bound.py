"""A recipe with its arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from remit.codes import Code
from remit.errors import UsageError
from remit.redact import preview_of

T_co = TypeVar("T_co", covariant=True)


class RecipeDefinition(Protocol[T_co]):
    """The facts that a run has to know of a recipe to run it as a part of itself."""

    @property
    def name(self) -> str:
        """Return what it is called."""
        ...

    @property
    def execution_version(self) -> str:
        """Its declared version and a hash of its code."""
        ...

    @property
    def function(self) -> Callable[..., Awaitable[T_co]]:
        """The function; its first parameter is the run."""
        ...

    def arguments(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Recorded input as the function's parameter types. Raises UsageError."""
        ...


class RecipeTable(Protocol):
    """The recipes that this process can run."""

    def get(self, name: str, recorded: str = "") -> RecipeDefinition[Any]:
        """The recipe of a name. Raises NotFoundError."""
        ...

    def names(self) -> list[str]:
        """Every name, sorted."""
        ...


class RecipeCall(Generic[T_co]):
    """A recipe with its arguments: nothing runs before it is given to Remit or to a run."""

    __slots__ = ("input", "recipe")

    def __init__(self, recipe: RecipeDefinition[T_co], arguments: dict[str, Any]) -> None:
        self.recipe = recipe
        self.input = arguments

    def __repr__(self) -> str:
        return f"<call of the recipe {self.recipe.name} with {preview_of(self.input)}>"


_OPTIONS: Final = frozenset(("key", "timeout", "undo", "conversation"))


def args_of(tool: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what stands behind a tool's name in `run.call`: one dict at most, and options. Raises UsageError."""
    if len(args) > 1 or named.keys() - _OPTIONS or (args and not isinstance(args[0], dict | None)):
        remedy = f'Write run.call("{tool}", {{"name": value}}), or run.call(function, name=value).'
        raise UsageError(f"run.call takes the arguments of {tool} as one dict", code=Code.INVALID_INPUT, remedy=remedy)
    return args
