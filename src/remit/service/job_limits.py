"""The limits that a job is started with, as they are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remit.jobs.caller import overlay_of
from remit.policy.groups import Groups, expanded
from remit.tools.budget import parse_budget


def overlay_record(policy: Sequence[Mapping[str, Any]], tools: Sequence[str] | None, groups: Groups) -> dict[str, Any]:
    """The job's own rules, with members in the place of groups. Raises PolicyError."""
    overlay: dict[str, Any] = {}
    if policy:
        overlay["rules"] = expanded([dict(rule) for rule in policy], groups)
    if tools is not None:
        overlay["tools"] = list(tools)
    if overlay:
        overlay_of(overlay)
    return overlay


def budget_record(budget: Mapping[str, int]) -> dict[str, int]:
    """The job's budget. Raises UsageError."""
    parse_budget(budget)
    return dict(budget)
