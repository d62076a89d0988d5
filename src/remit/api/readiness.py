"""Refuses a request while a required dependency is not ready (contract: tickets, `requireDeps`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.codes import Code
from remit.http.problem import Problem

if TYPE_CHECKING:
    from remit.service.health import Health


async def require_deps(health: Health) -> None:
    """Raise Problem with the members of the contract (tickets, "Codes") if a required dependency is missing."""
    missing = await health.missing()
    if missing is not None:
        said = {name: value for name, value in missing.refusal().items() if name != "error_code"}
        raise Problem(Code.MCP_REQUIRED_UNAVAILABLE, **said)
