"""`python -m bench [NAME…]`: measure, print the table, write build/bench.json."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import msgspec

from bench import journal, startup, steps
from bench.measure import Result

ALL = (
    steps.read_only,
    steps.side_effecting,
    steps.concurrent,
    steps.short_jobs,
    steps.replayed,
    journal.appends,
    journal.gateway,
    startup.imported,
    startup.helped,
)


async def main(names: list[str]) -> list[Result]:
    """Run those whose function name is given, or all."""
    results = []
    with tempfile.TemporaryDirectory(prefix="remit-bench-") as folder:
        for one in ALL:
            if not names or one.__name__ in names:
                result = await one(Path(folder))
                results.append(result)
                print(row(result), flush=True)
    return results


def row(result: Result) -> str:
    """One line of the table."""
    value = f"{result.value:,.0f} {result.unit}" if result.value >= 100 else f"{result.value:.1f} {result.unit}"  # noqa: PLR2004
    ratio = f"{result.floor_ratio:.2f}" if result.floor_ratio is not None else "-"
    floor = f"{result.floor:,.0f}" if result.floor is not None else "-"
    return f"{result.name:34} {value:>20} {floor:>12} {ratio:>7}   {result.note}"


if __name__ == "__main__":
    print(f"{'measured':34} {'value':>20} {'floor':>12} {'ratio':>7}   ({os.cpu_count()} cores)")
    found = asyncio.run(main(sys.argv[1:]))
    target = Path("build/bench.json")
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
