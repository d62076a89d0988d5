"""A part of others keeps to names of its own: it takes no operation, path or page of the core's."""

from __future__ import annotations

from typing import Any

import pytest

from remit import Run, recipe
from remit.api.route import Route
from remit.api.table import ROUTES, routes_of
from remit.capability import Capability
from remit.codes import Code
from remit.errors import UsageError
from remit.jobs.recipe import Recipes
from remit.operation import operations
from remit.pages.page import Page, PageRequest, See
from remit.pages.table import PAGES, pages_of
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.parts import nouns_of, recipes_of, tuples_of


async def answer(_request: Any) -> None:
    """Answer."""


async def show(_request: PageRequest) -> See:
    """Show."""
    return See("/")


def route(name: str, path: str) -> Route:
    return Route(method="GET", path=path, name=name, scope="read", summary="Answer.", handler=answer)


OWN = route("weather.days", "/v1/weather/days")
NAMED_LIKE_ANOTHER = route("jobs.page", "/v1/weather/days")
PLACED_ELSEWHERE = route("weather.days", "/v1/jobs")
BROUGHT: list[Route | Page] = []
ROUTED = Capability(name="weather", about="Forecasts.", routes=f"{__name__}:BROUGHT")
SHOWN = Capability(name="weather", about="Forecasts.", pages=f"{__name__}:BROUGHT")


def brings(one: Route | Page) -> None:
    BROUGHT[:] = [one]


def test_what_bears_the_name_of_the_part_stands_beside_the_core() -> None:
    brings(OWN)
    assert {one.name for one in routes_of([ROUTED])} > {"weather.days", "jobs.page"}
    brings(Page(path="/weather", scope="read", handler=show, name="Weather", key="y"))
    assert {one.path for one in pages_of([SHOWN])} > {"/weather", "/jobs"}


@pytest.mark.parametrize("one", [NAMED_LIKE_ANOTHER, PLACED_ELSEWHERE], ids=["name", "path"])
def test_an_operation_with_another_name_or_path_is_refused(one: Route) -> None:
    brings(one)
    with pytest.raises(UsageError, match="weather") as refused:
        routes_of([ROUTED])
    assert refused.value.code is Code.MODULE_UNLOADABLE


def test_a_page_elsewhere_is_refused() -> None:
    brings(Page(path="/jobs", scope="read", handler=show))
    with pytest.raises(UsageError, match="weather") as refused:
        pages_of([SHOWN])
    assert refused.value.code is Code.MODULE_UNLOADABLE


@recipe("forecast")
async def outlook(_run: Run) -> None:
    """Forecast."""


def test_a_recipe_with_another_name_than_its_reference_is_refused() -> None:
    part = Capability(name="weather", about="Forecasts.", recipes=(f"{__name__}:outlook",))
    with pytest.raises(UsageError, match="is the recipe forecast") as refused:
        Recipes(loaders=recipes_of([part])).all()
    assert refused.value.code is Code.MODULE_UNLOADABLE


def test_a_recipe_of_two_parts_is_refused() -> None:
    parts = [Capability(name=name, about="", recipes=(f"{name}.recipes:forecast",)) for name in ("weather", "stars")]
    with pytest.raises(UsageError, match="the part stars") as refused:
        recipes_of(parts)
    assert refused.value.code is Code.MODULE_UNLOADABLE


def test_every_operation_and_page_of_a_part_that_ships_is_in_the_tables() -> None:
    declared = {one.declaration.name for _, kind in nouns_of(FIRST_PARTY) for one in operations(kind)}
    assert {*declared, *(one.name for one in tuples_of(FIRST_PARTY, "routes"))} <= {one.name for one in ROUTES}
    assert set(tuples_of(FIRST_PARTY, "pages")) <= set(PAGES)
