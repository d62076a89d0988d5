"""Every route: those of declared operations, and those whose handler has a thought of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from remit.api.derived import derived, route_of
from remit.api.route import Route
from remit.api.routes import artifacts, confirmations, history, jobs, plans, server, tools
from remit.operation import operations
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.parts import check_names, nouns_of, tuples_of

if TYPE_CHECKING:
    from remit.capability import Capability

_CORE: Final[tuple[Route, ...]] = (
    *server.ROUTES,
    *jobs.ROUTES,
    *history.ROUTES,
    *artifacts.ROUTES,
    *plans.ROUTES,
    *confirmations.ROUTES,
    *tools.ROUTES,
    *derived(),
)


def routes_of(parts: Iterable[Capability]) -> tuple[Route, ...]:
    """Return the routes of the core and of parts. One of a part that ships takes the place of the core's of its name.

    Raise UsageError (MODULE_UNLOADABLE) for a part of others whose operations are not named after it.
    """
    table = {route.name: route for route in _CORE}
    for part in parts:
        declared = (route_of(noun.name, one) for noun, kind in nouns_of((part,)) for one in operations(kind))
        for route in (*tuples_of((part,), "routes"), *declared):
            if part not in FIRST_PARTY:
                check_names(part, f"the operation {route.name}", route.name, f"{part.name}.")
                check_names(part, f"the path {route.path}", route.path, f"/v1/{part.name}/")
            table[route.name] = route
    return tuple(table.values())


ROUTES: Final = routes_of(FIRST_PARTY)
"""Those of the core and of the parts that ship."""
