"""Verification of what was recorded, and evidence packages: how fast each is, beside the bytes alone."""

from __future__ import annotations

import hashlib
import json

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.subject import reads, remit_in
from remit.evidence import verify
from remit.parts.audit.package import write_package

STEPS = 10_000


async def verified(lab: Lab) -> list[Result]:
    """`remit verify` of a journal, and of a package; the export of one."""
    package = lab.folder / "one.zip"
    results: list[Result] = []
    async with remit_in(lab.folder) as remit:
        job = await remit.start(reads(STEPS))
        await job
        journal = remit.runtime.journal
        data = [event.data for event in await journal.read(f"job/{job.id}")]

        async def floor() -> Reading:
            watch = Watch()
            for payload in data:
                hashlib.sha256(payload).digest()
                json.loads(payload)
            return _of_a_core(watch, len(data))

        async def whole_journal() -> Reading:
            watch = Watch()
            report = await remit.service.streams.verify()
            assert report.ok
            return _of_a_core(watch, report.events)

        async def export() -> Reading:
            watch = Watch()
            with package.open("w+b") as file:
                await write_package(journal, job.id, file)
            return watch.millis(1)

        async def one_package() -> Reading:
            watch = Watch()
            verdict = verify.check(str(package))
            assert verdict.state == "whole"
            return _of_a_core(watch, verdict.events)

        note = "floor: SHA-256 and json.loads of each payload; per second of processor time"
        results += await against(f"export of {STEPS:,} steps", "ms", export, None, mark=Mark(1_000))
        for name, sample in (
            ("verify, events of a journal", whole_journal),
            ("verify, events of a package", one_package),
        ):
            results += await against(name, "per second", sample, floor, note, mark=Mark(300_000))
    return results


def _of_a_core(watch: Watch, count: int) -> Reading:
    """Return how many a core does in a second, whatever else the machine does."""
    micros = watch.micros(count).cpu_us or 1.0
    return Reading(1e6 / micros, micros)
