"""Recipes of a server."""

from __future__ import annotations

from remit.client.connection import Connection
from remit.service.recipes import RecipeView


class RemoteRecipes:
    """The recipes of a server; see RecipesPort."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
        self._connection = connection

    async def views(self) -> list[RecipeView]:
        """Every recipe, by name."""
        found: list[RecipeView] = await self._connection.ask("recipes.page")
        return found

    async def view(self, name: str) -> RecipeView:
        """One recipe. Raise NotFoundError (UNKNOWN_RECIPE)."""
        view: RecipeView = await self._connection.ask("recipes.view", name)
        return view
