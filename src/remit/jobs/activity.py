"""Which branches of a run are active, and whether the run as a whole needs attention."""

from __future__ import annotations

import asyncio


class Activity:
    """Counts the branches of a run that do not wait; a job is parked once there are none."""

    def __init__(self, *, halting: bool = False) -> None:
        self.active = 1
        self.attention = asyncio.Event()
        """Something may have changed for the run as a whole."""
        self.halting = halting
        """No new effect begins; those under way end."""
        self.halted = False
        """A branch stopped on purpose, before a new effect or (always-replay) after one."""

    def block(self) -> None:
        """Record that the running branch waits from now on."""
        self.active -= 1
        if self.active == 0:
            self.attention.set()

    def unblock(self) -> None:
        """Record that a waiting branch goes on."""
        self.active += 1

    async def halt(self) -> None:
        """Stand still until the execution ends."""
        self.halted = True
        self.block()
        await asyncio.get_running_loop().create_future()
