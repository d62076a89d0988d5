"""In whose name a job calls, under which limits, and what its tools may know of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.jobs.skills import Skilled, pins_of
from remit.journal.labels import OURS
from remit.policy.overlay import Overlay, parse_overlay
from remit.tools.budget import ToolBudget, parse_budget
from remit.tools.provider import JobFacts

if TYPE_CHECKING:
    from remit.jobs.state import JobHistory
    from remit.journal.journal import Journal
    from remit.policy.decision import CallerKind

_SOURCE: Final = "job"


class JobCaller(msgspec.Struct, frozen=True, kw_only=True):
    """What every call of a job has in common."""

    principal: str
    kind: CallerKind
    """`job` for a recipe, `plan` for a task graph: its name is whatever its author wrote, and gives no rights."""
    recipe: str
    overlays: tuple[Overlay, ...]
    skills: Skilled
    """The skills that the whole job is under."""
    budget: ToolBudget | None
    priority: int
    facts: JobFacts


async def caller_of(
    history: JobHistory, job: str, labels: Mapping[str, str], recipe: str, journal: Journal, priority: int = 0
) -> JobCaller:
    """The caller that a job's record describes. Raises PolicyError or UsageError for limits it cannot understand."""
    created = history.created
    encoded = await journal.value(created.input, created.input_blob) if created is not None else None
    own = {name: value for name, value in labels.items() if not name.startswith(OURS)}
    skills = Skilled(pins_of(created))
    facts = JobFacts(id=job, recipe=recipe, labels=own, encoded=bytes(encoded or b"null"))
    return JobCaller(
        principal=history.principal,
        kind="plan" if created is not None and created.kind == "plan" else "job",
        recipe=recipe,
        overlays=(*((overlay_of(created.overlay),) if created and created.overlay else ()), *skills.overlays),
        skills=skills,
        budget=parse_budget(created.budget) if created is not None and created.budget else None,
        priority=priority,
        facts=facts,
    )


def overlay_of(raw: dict[str, Any]) -> Overlay:
    """Return what a job adds to the policy, as it is recorded: `rules` and `tools`. Raises PolicyError."""
    return parse_overlay(_SOURCE, raw.get("rules", ()), raw.get("tools"))
