"""`python -m bench [NAME…] [--all] [--peers]`: measure, print the table, write build/bench.json."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

import msgspec

from bench import (
    agents,
    api,
    console,
    first_token,
    flushes,
    follow,
    journal,
    mcp_calls,
    memory,
    origins,
    policy,
    postgres,
    sandbox,
    scale,
    seals,
    served,
    size,
    startup,
    steps,
    usage,
)
from bench.lab import Lab
from bench.measure import Result
from bench.table import heading, row

ALL = (
    steps.read_only,
    steps.side_effecting,
    flushes.flushed,
    flushes.slow_disk,
    flushes.fast_disk,
    steps.concurrent,
    postgres.concurrent_postgres,
    steps.short_jobs,
    steps.replayed,
    agents.turns_three_calls,
    agents.turns_one_call,
    agents.agents_at_once,
    agents.journal_of_turns,
    agents.journal_of_chats,
    first_token.first_token,
    first_token.first_token_of_64,
    journal.appends,
    journal.gateway,
    seals.sealed,
    policy.decision,
    policy.conditions,
    origins.origin,
    follow.follow,
    follow.follow_postgres,
    scale.scale,
    usage.sums,
    size.disk,
    memory.growth,
    memory.growth_spread,
    memory.parked_jobs,
    memory.parked_conversations,
    mcp_calls.mcp_provider,
    mcp_calls.mcp_server,
    mcp_calls.mcp_http,
    mcp_calls.mcp_connect,
    mcp_calls.mcp_idle,
    api.api_call,
    api.api_calls,
    api.in_process,
    api.tickets,
    api.tickets_postgres,
    served.serve_started,
    served.mcp_kept,
    served.followers,
    console.page_of_steps,
    console.pages_of_jobs,
    console.open_pages,
    sandbox.sandboxed,
    sandbox.sandboxed_at_once,
    sandbox.sandboxed_warm,
    startup.imported,
    startup.helped,
    startup.looked,
)
LONG = (memory.growth_million,)
"""Only where they are named, or with --all: they take minutes."""


async def main(names: list[str], *, everything: bool = False, peers: bool = False) -> list[Result]:
    """Run those whose function name is given; without names all, but the long ones only where everything is wanted."""
    results = []
    with tempfile.TemporaryDirectory(prefix="remit-bench-") as folder:
        lab = Lab(Path(folder), peers=peers)
        for one in (*ALL, *LONG):
            if one.__name__ in names or (not names and (everything or one in ALL)):
                found = await one(lab)
                results += found
                for result in found:
                    print(row(result), flush=True)
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions to run; without any, all but the long ones")
    parser.add_argument("--all", action="store_true", help="the long ones too")
    parser.add_argument("--peers", action="store_true", help="beside the peers, from .venv-bench")
    given = parser.parse_args()
    print(heading())
    found = asyncio.run(main(given.names, everything=given.all, peers=given.peers))
    target = Path("build/bench.json")
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
