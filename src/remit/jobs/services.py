"""The services that every execution of a process works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from remit.gateway.pipeline import Gateway
    from remit.jobs.program import Programs
    from remit.jobs.skills import Skills
    from remit.jobs.state import History
    from remit.jobs.versions import Versions
    from remit.journal.journal import Journal
    from remit.randomness import RandomSource


class JobServices(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a process that jobs use."""

    journal: Journal
    gateway: Gateway
    programs: Programs
    versions: Versions
    chance: RandomSource
    max_value_bytes: int
    """Bytes that a recipe may return."""
    report: Callable[[str, float | None, float | None, str], None]
    """Called with job, done, total and message."""
    worker: str
    """This process, in words."""
    with_code: Callable[[str, str, str], Awaitable[str]]
    """The owner of another process that works now and has an execution version of a recipe; empty: none has.

    Called with recipe, version, and the owner that does not count.
    """
    skills: Skills
    alive: Callable[[str], bool]
    """Whether the process of a lease's owner is known to run still."""
    lacked: set[str] = msgspec.field(default_factory=set)
    """Routes of jobs that were left because a tool was missing here."""
    suspects: dict[str, History] = msgspec.field(default_factory=dict)
    """Passes under way, by stream: a process may have died of those that count deaths."""
    step_by_step: bool = False
    """Whether an execution ends after each new effect (always-replay, for tests)."""
