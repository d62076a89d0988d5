"""Small plans to test with, and what is wrong with others."""

from __future__ import annotations

from typing import Any

import pytest

from remit.codes import Code
from remit.jobs.plans.check import read_plan
from remit.jobs.plans.problem import InvalidPlanError


def plan_with(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"version": "taskgraph-v1", "name": "p", "nodes": list(nodes), **more}


def node(**fields: Any) -> dict[str, Any]:
    return {"id": "n", "tool": "fs.read", **fields}


def problems_of(document: Any, **known: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidPlanError) as caught:
        read_plan(document, **known)
    assert caught.value.code is Code.PLAN_INVALID
    return [(one.path, one.message, one.expected) for one in caught.value.problems]


def only_problem(document: Any, **known: Any) -> tuple[str, str, str]:
    found = problems_of(document, **known)
    assert len(found) == 1, found
    return found[0]
