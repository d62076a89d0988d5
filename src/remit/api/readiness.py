"""Refuses requests while a dependency is missing (contract: tickets, `requireDeps`) or the journal is behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.http.problem import HttpProblem

if TYPE_CHECKING:
    from remit.service.health import Health

_AGAIN_S: Final = 1
"""Seconds after which what waits may have been written."""


def require_room(health: Health) -> None:
    """Raise Problem if so much waits to be written that nothing new should begin here."""
    if health.full():
        remedy = "Try again; if it lasts, the storage is too slow for what is asked of it."
        raise HttpProblem(Code.JOURNAL_BUSY, headers={"retry-after": str(_AGAIN_S)}, remedy=remedy)


async def require_deps(health: Health) -> None:
    """Raise Problem with the members of the contract (tickets, "Codes") if a required dependency is missing."""
    missing = await health.missing()
    if missing is not None:
        members = {name: value for name, value in missing.refusal().items() if name != "error_code"}
        raise HttpProblem(Code.MCP_REQUIRED_UNAVAILABLE, **members)
