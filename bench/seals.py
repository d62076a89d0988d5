"""What sealing heads costs: the same steps in a journal with a key and in one without."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.subject import reads, remit_in
from remit.journal.keys import make

STEPS, ROUNDS = 4_000, 9


async def sealed(lab: Lab) -> list[Result]:
    """Processor time of a read-only step: the cheapest there is, so that a seal weighs most."""

    async def sample(flags: Mapping[str, str]) -> Reading:
        async with remit_in(lab.folder, flags=flags) as remit:
            watch = Watch()
            await remit.run(reads(STEPS))
            taken = watch.rate(STEPS)
        assert taken.cpu_us is not None
        return Reading(taken.cpu_us, taken.cpu_us)

    with tempfile.TemporaryDirectory(dir=lab.folder) as own:
        key = Path(own) / "journal.keys"
        make(key)
        return await against(
            "read-only step, sealed: its processor time",
            "µs",
            lambda: sample({"journal.key_file": str(key)}),
            lambda: sample({}),
            "floor: the same without a key",
            mark=Mark(1.03, "floor"),
            rounds=ROUNDS,
        )
