"""What a recorded step costs on disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

import apsw

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, against
from bench.subject import reads, remit_in

STEPS = 4_000
_NUMBERS = 8 + 8 + 8
"""Of an event's envelope: stream, seq and time, each as 64 bits; its kind and chain value are counted as they are."""


async def disk(lab: Lab) -> list[Result]:
    """Bytes of the journal's file for each step, beside what its events say."""

    async def sample() -> Reading:
        size, _ = await _written(lab.folder)
        return Reading(size / STEPS)

    async def floor() -> Reading:
        _, size = await _written(lab.folder)
        return Reading(size / STEPS)

    note = "floor: payloads and envelopes of its events"
    return await against("disk, recorded step", "bytes", sample, floor, note, mark=Mark(1.5, "floor"), rounds=1)


async def _written(folder: Path) -> tuple[int, int]:
    """Bytes of a closed journal with so many steps, and of what its events hold."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        path = Path(own) / "kept.db"
        async with remit_in(folder, flags={"journal.url": str(path)}) as remit:
            await remit.run(reads(STEPS))
        db = apsw.Connection(str(path))
        size = db.execute(
            "SELECT sum(? + length(CAST(kind AS BLOB)) + length(hash) + length(data)) FROM events", (_NUMBERS,)
        ).get
        db.close()
        return path.stat().st_size, int(size)
