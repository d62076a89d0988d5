"""`python -m bench [NAME…] [--all] [--peers] [--keep [--because REASON]]`: print the table, write build/bench.json.

The exit status is 1 if a measurement failed, a ratio fell by more than a quarter of the baseline's, or a count rose.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench import (
    agents,
    api,
    audit,
    browser,
    console,
    costs,
    documents,
    drift,
    evidence,
    first_token,
    flushes,
    follow,
    forks,
    guard,
    journal,
    masking,
    mcp_calls,
    memory,
    origins,
    passed,
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
    walk,
    web,
    work,
    workers,
)
from bench.baseline import fallen_behind, keep, load
from bench.lab import Lab
from bench.measure import Result
from bench.pages import write_pages
from bench.table import heading, row

ALL = (
    steps.read_only,
    steps.side_effecting,
    flushes.flushed,
    flushes.slow_disk,
    flushes.fast_disk,
    steps.concurrent,
    postgres.concurrent_postgres,
    postgres.sharded_postgres,
    workers.workers_on_postgres,
    steps.short_jobs,
    costs.step,
    costs.short_job,
    costs.turn,
    walk.walked,
    walk.asked,
    steps.replayed,
    forks.forked,
    forks.checked,
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
    seals.recorded,
    evidence.verified,
    masking.masked,
    guard.hooked,
    passed.passed,
    policy.decision,
    policy.conditions,
    origins.origin,
    documents.indexed,
    documents.searched,
    follow.follow,
    follow.follow_postgres,
    scale.scale,
    usage.sums,
    drift.drift,
    audit.questions,
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
    browser.browser_started,
    browser.browser_seen,
    web.extracted,
    web.bombed,
    web.reported,
    work.board,
    work.empty_run,
    startup.imported,
    startup.helped,
    startup.looked,
    startup.introduced,
)
LONG = (memory.growth_million,)
"""Only where they are named, or with --all: they take minutes."""


class Failure(NamedTuple):
    """A measurement that ended with an error; the others go on."""

    name: str
    error: str


async def main(
    names: list[str], *, everything: bool = False, peers: bool = False
) -> tuple[list[Result], list[Failure]]:
    """Run those whose function name is given; without names all, but the long ones only where everything is wanted."""
    results: list[Result] = []
    failures: list[Failure] = []
    with tempfile.TemporaryDirectory(prefix="remit-bench-") as folder:
        lab = Lab(Path(folder), peers=peers)
        for measurement in (*ALL, *LONG):
            name = measurement.__name__
            if name not in names and (names or not (everything or measurement in ALL)):
                continue
            try:
                lines = await measurement(lab)
            except Exception as error:  # noqa: BLE001 - one that fails is named, and loses none of the others
                failures.append(Failure(name, "".join(traceback.format_exception(error))))
                print(f"{name:38} FAILED: {error}", flush=True)
                continue
            results += lines
            for result in lines:
                print(row(result), flush=True)
            _write(results)
    return results, failures


def _write(results: list[Result]) -> None:
    target = Path("build/bench.json")
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(msgspec.json.format(msgspec.json.encode(results)))


def _ended(results: list[Result], failures: list[Failure]) -> int:
    """Print what failed and what fell behind the baseline; the exit status."""
    for failure in failures:
        print(f"\n{failure.name} failed:\n{failure.error}")
    fallen = fallen_behind(results, load())
    if fallen:
        print("\nBehind the baseline:", *fallen, sep="\n  ")
    return 1 if failures or fallen else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions to run; without any, all but the long ones")
    parser.add_argument("--all", action="store_true", help="the long ones too")
    parser.add_argument("--peers", action="store_true", help="beside the peers, from .venv-bench")
    parser.add_argument(
        "--keep", action="store_true", help="make the better results the baseline, and the tables of the docs"
    )
    parser.add_argument(
        "--because", default="", metavar="REASON", help="with --keep: why worse results take the place of better ones"
    )
    options = parser.parse_args()
    print(heading())
    results, failures = asyncio.run(main(options.names, everything=options.all, peers=options.peers))
    status = _ended(results, failures)
    if options.keep and not failures:
        keep(results, reason=options.because)
        write_pages()
    sys.exit(status)
