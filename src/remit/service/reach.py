"""The reach of a token that is limited to some tools: one rule for every route and page.

It reaches the questions and remembered approvals about its tools, for any principal, and the jobs and sessions of its
own principal, which are held to the same tools if such a token started them. What belongs to others may call other
tools, or hold what they returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.http.problem import HttpProblem
from remit.service.visible import sees_tool

if TYPE_CHECKING:
    from remit.http.access import Access
    from remit.service.service import Service

_STREAMS: Final = ("job", "session")


async def check_reach(service: Service, access: Access, path: Mapping[str, str]) -> None:
    """Raise Problem if what a path names is beyond a token that is limited to some tools; also NotFoundError."""
    if not access.tools:
        return
    if "confirmation" in path and not sees_tool(access, (await service.confirmations.view(path["confirmation"])).tool):
        raise _beyond("the question is about another one")
    if "rule" in path:
        for rule in await service.approvals.active():
            if rule.id == path["rule"] and not sees_tool(access, rule.tool):
                raise _beyond("the approval is about another one")
    for name in _STREAMS:
        if name in path and access.principal != await service.jobs.principal(await service.jobs.find(path[name])):
            raise _beyond(f"the {name} is not of its own principal")


def _beyond(reason: str) -> HttpProblem:
    return HttpProblem(Code.SCOPE_REQUIRED, f"The token is for some tools only, and {reason}.")
