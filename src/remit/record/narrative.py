"""A job's events as a story: when it worked and when it waited, what each step did, who allowed it. Pure."""

from __future__ import annotations

import msgspec

from remit.journal import kinds as k
from remit.record.segments import Segment
from remit.record.step import Drift, StepNarrative, Waited


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """Another worker continued the job."""

    at: int
    owner: str
    previous_owner: str
    replayed_steps: int | None
    """None while it is still replaying."""


class Narrative(msgspec.Struct, frozen=True, kw_only=True):
    """The story of one job, or of one session of calls from outside any job."""

    job: str
    """Its identifier, or the session's."""
    name: str
    """The recipe's or plan's; the program that calls, for a session."""
    kind: str
    """`recipe`, `plan` or `session`."""
    principal: str
    retry_of: str
    """The job whose steps it took over; empty: none."""
    execution_version: str
    planner_version: str
    tool_registry_version: str
    created_at: int
    ended_at: int | None
    events: int
    input_preview: str
    result_preview: str
    error: k.ErrorInfo | None
    cancelled_by: str
    segments: tuple[Segment, ...]
    steps: tuple[StepNarrative, ...]
    drifts: tuple[Drift, ...]
    recoveries: tuple[Recovery, ...]
    stuck: tuple[Waited, ...] = ()
    """When the code at hand could not go on, at no step in particular."""
