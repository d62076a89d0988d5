"""Options of a job: how it is filed, and what it may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from remit.journal.kinds import ScheduleOrigin


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a job is filed."""

    title: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    priority: int = 0
    """Higher runs first."""
    principal: str = ""
    """The principal that asks; empty: the configured principal."""
    delay_s: float = 0.0
    """Seconds before it starts by itself; a signal, or resuming it, starts it at once."""
    policy: tuple[Mapping[str, Any], ...] = ()
    """Rules for this job's calls, added to the policy; they may deny or ask, never allow (rule 8)."""
    tools: tuple[str, ...] | None = None
    """The only tools that it may call, by full name, glob or key; None: whatever policy lets it."""
    skills: tuple[str, ...] = ()
    """The skills that it is under: it may call their tools alone, and keeps to their rules."""
    budget: Mapping[str, int] = msgspec.field(default_factory=dict)
    """The budget of its calls: `max_steps`, `max_calls` of one tool, `max_wall_ms` of one call."""
    subject: str = ""
    """Whom its values are about, so that they can be erased; its title says nothing of them then, if none is given."""
    job: str = ""
    """Its identifier, if a repeated start has to meet the same job: `job_` and 26 digits; empty: a new one."""
    schedule: ScheduleOrigin | None = None
    """The schedule that starts it; the job is its work of one time."""
    untrusted: bool = False
    """True for input that is untrusted text: an agent's task then names nothing that its calls may reach."""
