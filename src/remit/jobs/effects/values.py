"""Values of the clock and of chance, read once and recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.journal.kinds import RandomRecorded, TimeRecorded, UuidRecorded

if TYPE_CHECKING:
    from remit.jobs.effects.recorder import Recorder
    from remit.jobs.state import Value
    from remit.randomness import RandomSource


class Values:
    """Reads the clock and draws random values."""

    def __init__(self, recorder: Recorder, chance: RandomSource) -> None:
        self._recorder = recorder
        self._chance = chance

    async def read(self, step: str, kind: type[Value]) -> Value:
        """A new value; it counts once it is recorded."""
        await self._recorder.begin()
        found: Value
        if kind is TimeRecorded:
            found = TimeRecorded(step=step, value=self._recorder.now())
        elif kind is RandomRecorded:
            found = RandomRecorded(step=step, value=self._chance.number())
        else:
            found = UuidRecorded(step=step, value=str(self._chance.uuid()))
        await self._recorder.record(found)
        await self._recorder.end()
        return found
