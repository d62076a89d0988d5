"""Drift of skills: those that jobs took up, against the skills of this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from remit.journal import kinds as k
from remit.record.walk import jobs_under

if TYPE_CHECKING:
    from remit.jobs.skills import Skills
    from remit.journal.event import Event
    from remit.record.walk import Origin, Take

_EXAMPLES: Final = 5


class SkillDrift(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a skill that jobs took up, and that is another today. They keep to it."""

    name: str
    recorded: str
    """The digest of its folder then."""
    current: str
    """Today's; empty: this process has no such skill, or cannot use it."""
    open: int
    """Jobs under it that have not ended."""
    ended: int
    open_jobs: tuple[str, ...]
    """The first few of those."""


class SkillCollector:
    """Collects the skills that jobs took up."""

    def __init__(self, since: int = 0, job: str = "") -> None:
        self._since = since
        self._job = job
        self._found: dict[tuple[str, str], list[Origin]] = {}

    @property
    def takers(self) -> Mapping[type[k.Payload], Take]:
        """The beginning of jobs."""
        return {k.JobCreated: self._create}

    def _create(self, origin: Origin, event: Event, payload: k.JobCreated) -> None:
        if event.at >= self._since and (not self._job or origin.id == self._job):
            for pin in payload.skills:
                self._found.setdefault((pin.name, pin.digest), []).append(origin)

    async def drifts(self, skills: Skills) -> list[SkillDrift]:
        """Return every version that differs, those of open jobs first."""
        names = sorted({name for name, _ in self._found})
        today = await skills.digests(names) if names else {}
        drifts = [
            SkillDrift(name=name, recorded=recorded, current=today.get(name, ""), **jobs_under(origins, _EXAMPLES))
            for (name, recorded), origins in self._found.items()
            if today.get(name) != recorded
        ]
        return sorted(drifts, key=lambda one: (-one.open, -one.ended, one.name))
