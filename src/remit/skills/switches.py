"""Switches of skills: which are off, folded from the stream `skills`, so that it holds for every process at once.

A skill is on if neither its table in remit.toml nor this says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.errors import AppendConflictError
from remit.journal.event import HeadPatch
from remit.journal.kinds import decode
from remit.skills.kinds import SkillDisabled, SkillEnabled

if TYPE_CHECKING:
    from remit.journal.journal import Journal

STREAM: Final = "skills"
KIND: Final = "skills"
_TRIES: Final = 10


class Switches:
    """Switches of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seq = 0
        self._off: dict[str, SkillDisabled] = {}

    async def off(self) -> dict[str, SkillDisabled]:
        """Return what switched each skill off that is off; only what is new is read."""
        head = await self._journal.head(STREAM)
        if head is not None and head.seq > self._seq:
            for event in await self._journal.read(STREAM, self._seq):
                self._take(decode(event.kind, event.data))
                self._seq = event.seq
        return self._off

    async def switch(self, skill: str, *, on: bool, by: str, reason: str) -> None:
        """Switch a skill on or off, durably; one that is so already stays so. Raises AppendConflictError."""
        payload = (SkillEnabled if on else SkillDisabled)(skill=skill, by=by, reason=reason)
        for attempt in range(_TRIES):
            if (skill not in await self.off()) is on:
                return
            head = await self._journal.head(STREAM)
            patch = HeadPatch(state="kept", title="skills")
            try:
                if head is None:
                    await self._journal.create(STREAM, KIND, payload, patch=patch)
                else:
                    writer = self._journal.writer(STREAM, KIND, head)
                    await self._journal.append(writer, payload, synced=True, patch=patch)
            except AppendConflictError:
                if attempt == _TRIES - 1:
                    raise
            else:
                return

    def _take(self, payload: object) -> None:
        match payload:
            case SkillDisabled(skill=skill):
                self._off[skill] = payload
            case SkillEnabled(skill=skill):
                self._off.pop(skill, None)
            case _:
                pass
