"""Side-effecting steps on a disk of known speed, in their own process: `python -m bench.slow remit|floor STEPS FOLDER`.

bench/slow_flush.c makes the disk slow; a file layer written in Python would slow down every read and write as well.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from bench import floors
from bench.lab import ROOT, Said
from bench.measure import PeerMissingError, Reading, Watch
from bench.subject import remit_in, writes


async def rate_on(folder: Path, what: str, delay_us: int, steps: int) -> Reading:
    """Steps per second of `remit` or of its `floor` where a flush takes at least `delay_us`."""
    library = _compiled(folder)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.slow", what, str(steps), str(folder)),
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(library), "BENCH_FLUSH_US": str(delay_us)},
        stdout=asyncio.subprocess.PIPE,
    )
    reading = msgspec.json.decode((await process.communicate())[0], type=Said)
    return Reading(reading.rate, reading.cpu_us)


def _compiled(folder: Path) -> Path:
    if sys.platform != "linux":
        raise PeerMissingError("a flush is made slow with LD_PRELOAD, which Linux has")
    library = folder / "slow_flush.so"
    if not library.exists():
        command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(ROOT / "bench/slow_flush.c"), "-ldl"]
        try:
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a compiler and a file of ours
        except (OSError, subprocess.CalledProcessError) as error:
            raise PeerMissingError(f"slow_flush.c cannot be compiled here: {error}") from error
    return library


async def _measured(what: str, steps: int, folder: Path) -> Reading:
    if what == "floor":
        return await floors.one_transaction_each(folder, steps, "FULL")
    async with remit_in(folder) as remit:
        await remit.run(writes(steps // 10))
        watch = Watch()
        await remit.run(writes(steps))
        return watch.rate(steps)


if __name__ == "__main__":
    reading = asyncio.run(_measured(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
    print(msgspec.json.encode(Said(reading.value, reading.cpu_us)).decode())
