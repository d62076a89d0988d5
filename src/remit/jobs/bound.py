"""A recipe with its arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class RecipeDefinition(Protocol[T_co]):
    """What a run has to know of a recipe to run it as a part of itself."""

    @property
    def name(self) -> str:
        """What it is called."""
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


class KnownRecipes(Protocol):
    """The recipes that this process can run."""

    def get(self, name: str, recorded: str = "") -> RecipeDefinition[Any]:
        """The recipe of a name. Raises NotFoundError."""
        ...

    def names(self) -> list[str]:
        """Every name, sorted."""
        ...


class RecipeCall(Generic[T]):
    """A recipe with its arguments: nothing runs before it is given to Remit or to a run."""

    __slots__ = ("input", "recipe")

    def __init__(self, recipe: RecipeDefinition[T], arguments: dict[str, Any]) -> None:
        self.recipe = recipe
        self.input = arguments
