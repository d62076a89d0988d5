"""Routes: which workers can take a job. A job without a route is for all of them.

A job begins with the name of its recipe as its route. A worker that finds out that it lacks something else for the job
leaves it with a route that says what: the version of a recipe, or a tool. Workers ask for recipes all the time, and for
the rest now and then and when their tools change.

A job whose person waits in one process (`remit run`) is kept for that process: its route names the process too. Others
take it once that process is dead, or has long left it although it is due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import RemitError
from remit.journal.event import HeadPatch
from remit.tools.names import provider_of

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.journal.kinds import JobCreated
    from remit.tools.catalog import Catalog

_KEPT: Final = " for "
"""No name of a recipe or a tool holds this."""
_LONGEST: Final = 60 * SECOND


class LackingError(RemitError):
    """This process lacks something that a job needs; another may have it."""

    default = Code.UNKNOWN_TOOL

    def __init__(self, message: str, *, route: str, code: Code, remedy: str = "") -> None:
        self.route = route
        super().__init__(message, code=code, remedy=remedy)


def route_of(created: JobCreated | None) -> str:
    """The route of a new job: its recipe; a plan is for everyone."""
    return created.name if created is not None and created.kind == "recipe" else ""


def kept_for(route: str, owner: str) -> str:
    """The route, for one process alone: that of a lease's owner. An empty owner keeps it for no one."""
    return f"{route}{_KEPT}{owner}" if owner else route


def unkept(route: str) -> tuple[str, str]:
    """The route without the process it is kept for, and the owner of that process; empty: for none."""
    public, mark, owner = route.rpartition(_KEPT)
    return (public, owner) if mark else (route, "")


def of_version(recipe: str, version: str) -> str:
    """Workers with one version of a recipe."""
    return f"{recipe}@{version}"


def of_tool(name: str) -> str:
    """Workers with a tool, or with the MCP server that has it."""
    full = name.replace("__", ".")
    return f"tool:{provider_of(full)}" if full.startswith("mcp.") else f"tool:{full}"


async def of_tools(catalog: Catalog) -> set[str]:
    """Return what this process has now."""
    return {f"tool:{each}" for each in await catalog.offers()}


async def free(journal: Journal, stream: str, keeper: str) -> None:
    """Let every worker take a job that was woken: to stop it needs no code, and what it lacked may be there now.

    With a keeper, only its process may. Wake it first: a worker that takes it from then on sees why, and one that has
    it already looks again.
    """
    head, route = await journal.head(stream), kept_for("", keeper)
    while head is not None and head.route != route and head.lease_owner is None and not head.closed:
        writer = journal.writer(head.stream, head.kind, head)
        if await journal.park(writer, HeadPatch(route=route), seen_wakes=head.wakes):
            break
        head = await journal.head(stream)


def delay(times_left: int) -> int:
    """Microseconds before the next worker looks at a job that was left so often: workers with half of it take turns."""
    return 0 if times_left == 0 else min(_LONGEST, SECOND * 2 ** min(times_left - 1, 10))
