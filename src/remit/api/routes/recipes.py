"""Recipes over HTTP: which ones can be started, and what they take."""

from __future__ import annotations

from typing import Final

from remit.api.route import ApiRequest, Route
from remit.codes import Code
from remit.service.recipes import RecipeView


async def page(asked: ApiRequest) -> list[RecipeView]:
    """List the recipes with their parameters, by name."""
    return await asked.service.recipes.views()


async def view(asked: ApiRequest) -> RecipeView:
    """Show one recipe."""
    return await asked.service.recipes.view(asked.path["recipe"])


ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/recipes",
        name="recipes.page",
        scope="read",
        summary="List recipes.",
        handler=page,
        answer=list[RecipeView],
    ),
    Route(
        method="GET",
        path="/v1/recipes/{recipe}",
        name="recipes.view",
        scope="read",
        summary="Show a recipe.",
        handler=view,
        answer=RecipeView,
        codes=(Code.UNKNOWN_RECIPE,),
    ),
)
