"""What evidence costs: the same steps with a seal on each head, and with a recorder that signs them, and without."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.subject import reads, remit_in
from remit import Remit
from remit.journal.seals import make
from remit.journal.signing_key import make_key
from remit.parts.recorder.recorder import LogRecorder
from remit.parts.recorder.wiring import close, open_recorder

STEPS, ROUNDS = 4_000, 9
SIGNED, SIGNED_ROUNDS = 30_000, 5
"""Steps that take some seconds, for a recorder looks once a second."""


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


async def recorded(lab: Lab) -> list[Result]:
    """Processor time of a read-only step, sealed, with all of them signed as it happens and once more in the end."""
    with tempfile.TemporaryDirectory(dir=lab.folder) as own:
        seals, key = Path(own) / "journal.keys", Path(own) / "recorder.pem"
        make(seals)
        make_key(key)
        sealed_only = {"journal.key_file": str(seals)}
        signing = {"recorder.origin": "bench.example/log", "recorder.key": str(key), "recorder.file": f"{own}/notes"}

        async def sample(flags: Mapping[str, str], *, records: bool) -> Reading:
            async with remit_in(lab.folder, flags=flags) as remit:
                watch = Watch()
                if not records:
                    await remit.run(reads(SIGNED))
                else:
                    recorder, publisher = await open_recorder(remit.runtime)
                    signer = asyncio.create_task(_sign(remit, recorder))
                    await remit.run(reads(SIGNED))
                    signer.cancel()
                    await asyncio.wait([signer])
                    await close(recorder, publisher)
                taken = watch.rate(SIGNED)
            assert taken.cpu_us is not None
            return Reading(taken.cpu_us, taken.cpu_us)

        return await against(
            "read-only step, sealed and recorded: its processor time",
            "µs",
            lambda: sample({**sealed_only, **signing}, records=True),
            lambda: sample(sealed_only, records=False),
            "floor: the same without a recorder",
            mark=Mark(1.02, "floor"),
            rounds=SIGNED_ROUNDS,
        )


async def _sign(remit: Remit, recorder: LogRecorder) -> None:
    while True:
        await asyncio.shield(recorder.look())
        await remit.clock.sleep(1)
