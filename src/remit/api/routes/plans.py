"""Plans over HTTP: checking one without starting it. `POST /v1/jobs` with `plan` starts one."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from remit.api.route import ApiRequest, Route
from remit.jobs.plans.check import read_plan
from remit.jobs.plans.plan import plan_hash
from remit.jobs.plans.problem import InvalidPlanError, PlanProblem


class CheckBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan that is only looked at."""

    plan: dict[str, Any]
    """A task graph, `taskgraph-v1`."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a plan."""

    ok: bool
    plan_hash: str
    """Of a plan that is right: what its jobs record."""
    problems: list[PlanProblem]


async def check(request: ApiRequest) -> Checked:
    """Say all that is wrong with a plan, with the tools and recipes that there are. Nothing is recorded or run."""
    body: CheckBody = request.body
    tools = {word for tool in await request.service.tools.views() for word in (tool.name, tool.key, tool.wire_name)}
    try:
        plan = read_plan(body.plan, tools=tools, recipes=request.service.recipes.names())
    except InvalidPlanError as error:
        return Checked(ok=False, plan_hash="", problems=error.problems)
    return Checked(ok=True, plan_hash=plan_hash(plan), problems=[])


ROUTES: Final = (
    Route(
        method="POST",
        path="/v1/plans/check",
        name="plans.check",
        scope="read",
        summary="Check a plan.",
        handler=check,
        body=CheckBody,
        answer=Checked,
        example={
            "plan": {
                "version": "taskgraph-v1",
                "name": "p",
                "nodes": [{"id": "read", "tool": "fs.read", "args": {"path": "a"}}],
            }
        },
    ),
)
