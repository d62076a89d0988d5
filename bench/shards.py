"""Shards that cannot be run here, simulated: `python -m bench.shards` prints the table of docs/scaling.md.

Every root of a stream (a job with its confirmations, a ticket) is on one shard, chosen by the digest of its name, as a
router would. A shard does a step in a fixed time, in order; jobs arrive at random, at a share of what all shards can do
together. The rate of one shard scales the rates and nothing else; times are in steps of one shard.
"""

from __future__ import annotations

import random
from hashlib import sha256
from typing import Final, NamedTuple

STEPS: Final = 10
"""Steps of a job."""
JOBS_EACH: Final = 400
"""Jobs for each shard, on average; at least 20,000 in all."""
SHARDS: Final = (1, 4, 16, 100, 1_000)
LOAD: Final = 0.7
"""The share of what all shards can do together that arrives."""


class Row(NamedTuple):
    """The result for a number of shards."""

    shards: int
    fullest: float
    """The load of the fullest shard beside that of the average one."""
    wait: float
    """The 99th percentile of the time from a job's arrival to its last step, in steps of one shard."""
    without_one: float
    """The share of jobs that wait while one shard is down."""
    listed: float
    """The 99th percentile of a list that is merged from all shards beside that of one shard."""


def simulate(shards: int, seed: int = 7) -> Row:
    """One run: jobs in the order of their arrival, each served by its shard."""
    chance = random.Random(seed)
    count = max(20_000, JOBS_EACH * shards)
    free, counts, waits = [0.0] * shards, [0] * shards, list[float]()
    now = 0.0
    for number in range(count):
        now += chance.expovariate(LOAD * shards / STEPS)
        shard = int.from_bytes(sha256(f"job/{number}".encode()).digest()[:8], "big") % shards
        free[shard] = max(now, free[shard]) + STEPS
        counts[shard] += 1
        waits.append(free[shard] - now)
    answers = sorted(max(chance.expovariate(1) for _ in range(shards)) for _ in range(500))
    alone = sorted(chance.expovariate(1) for _ in range(20_000))
    return Row(
        shards,
        max(counts) / (count / shards),
        sorted(waits)[int(0.99 * count)],
        1 / shards,
        answers[int(0.99 * len(answers))] / alone[int(0.99 * len(alone))],
    )


def lines() -> list[str]:
    """The rows of the table, as the page has them."""
    return [
        f"| {row.shards:,} | {row.shards:,} x | {row.fullest:.2f} x | {row.wait:,.0f} | "
        f"{row.without_one:.1%} | {row.listed:.1f} x |"
        for row in map(simulate, SHARDS)
    ]


if __name__ == "__main__":
    print("\n".join(lines()))
