"""What a token may see of an answer, and what it may have done, beyond its scopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from remit.http.access import Access
from remit.policy.overlay import covers
from remit.tools.naming import key_of

if TYPE_CHECKING:
    from remit.service.jobs import Jobs


def sees_tool(access: Access, tool: str) -> bool:
    """Whether a token covers a tool; one that is limited covers no question that is about no tool."""
    return not access.tools or (bool(tool) and covers(access.tools, tool, key_of(tool)))


async def may_retry(jobs: Jobs, access: Access, path: Mapping[str, Any]) -> None:
    """Raise Problem unless a token may have a job run again: all that it may, under the requester's name."""
    access.require_all_tools("the job")
    if access.principal is not None and await jobs.principal(path["job"]) != access.principal:
        access.require("decide")
