"""Events of skills: who switched one on or off. All of these are ours."""

from __future__ import annotations

from typing import ClassVar

from remit.journal.kinds.payload import Payload


class SkillEnabled(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `skills`: a skill is switched on again."""

    KIND: ClassVar[str] = "skill_enabled"
    skill: str
    by: str = ""
    reason: str = ""

    def words(self) -> str:
        return f"{self.by or 'someone'} switched the skill {self.skill} on"


class SkillDisabled(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `skills`: a skill is switched off, in every process that works on this journal."""

    KIND: ClassVar[str] = "skill_disabled"
    skill: str
    by: str = ""
    reason: str = ""

    def words(self) -> str:
        return f"{self.by or 'someone'} switched the skill {self.skill} off"
