"""The limits that a job is started with, as they are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from remit.jobs.caller import overlay_of
from remit.policy.groups import Groups, expanded
from remit.tools.budget import parse_budget

if TYPE_CHECKING:
    from remit.jobs.skills import SkillAdmission
    from remit.service.options import Options


def limits_record(options: Options, skills: SkillAdmission, groups: Groups) -> dict[str, Any]:
    """The fields of `job_created` that say what a job may do. Raises PolicyError or UsageError."""
    return {
        "overlay": overlay_record(options.policy, options.tools, groups),
        "budget": budget_record(options.budget),
        "input_untrusted": options.untrusted,
        "skills": skills.pins,
    }


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
