"""kill -9 of ticket runners at random moments: each ticket is done once, each side effect happens once."""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import os
import random
from pathlib import Path
from typing import Any

import pytest

from remit import Remit
from remit.errors import StateError
from tests.crash.ticket_worker import opened, run_until_killed
from tests.journal.storages import PostgresStorage

TICKETS = int(os.environ.get("REMIT_TEST_TICKETS", "12"))
KILLS = int(os.environ.get("REMIT_TEST_KILLS", "4"))
EVENT = {"type": "message", "thread_id": "t1", "content": "pay"}


async def create(remit: Remit, tickets: int) -> list[str]:
    """TRIAGE tickets, filled so that each has a TOOL ticket of two charges."""
    tools = []
    for number in range(tickets):
        triage = await remit.service.tickets.create({"type": "TRIAGE", "event": EVENT})
        steps = [{"tool_name": "bank_charge", "args": {"number": number * 10 + each}} for each in range(2)]
        filled = await remit.service.tickets.fill(triage.id, {"tool_steps": steps}, by="http_fill")
        assert filled.derived is not None
        tools.append(filled.derived.ticket)
    return tools


async def settle(remit: Remit, witness: Path) -> None:
    """As a person would: look at the bank's books, decide what nobody saw, and retry."""
    seen = {line.split()[1] for line in witness.read_text().splitlines()}
    for ticket in await remit.service.tickets.page(kind="TOOL", states=("failed", "blocked"), limit=1_000):
        report = await remit.service.tickets.report(ticket.id)
        assert report is not None
        for step in (await remit.service.jobs.view(report.run_id)).steps:
            if step.state == "unknown":
                number = step.meta.args_preview.split(":")[1].rstrip("}")
                decision: Any = "done" if number in seen else "retry"
                # No runner may have lived long enough to hear of what was decided before.
                with contextlib.suppress(StateError):
                    await remit.service.steps.decide(report.run_id, step.step, decision, int(number))
        await remit.service.tickets.retry(ticket.id)


async def work_through(url: str, folder: Path) -> None:
    witness = folder / "witness"
    witness.touch()
    chance = random.Random(7)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.crash.ticket_worker", "remit.app"])
    async with opened(url, folder) as remit:
        tools = await create(remit, TICKETS)
        kills = 0
        while len(await remit.service.tickets.page(kind="TOOL", states=("done",), limit=1_000)) < TICKETS:
            worker = processes.Process(target=run_until_killed, args=(url, str(folder)))
            worker.start()
            worker.join(chance.uniform(0.02, 0.25) if kills < KILLS else None)
            if worker.is_alive():
                worker.kill()
                kills += 1
            worker.join()
            await settle(remit, witness)
        effects = collections.Counter(witness.read_text().splitlines())
        assert effects == {f"{ticket} {n * 10 + each}": 1 for n, ticket in enumerate(tools) for each in range(2)}
        replies = await remit.service.tickets.page(kind="REPLY", limit=1_000)
        assert sorted(reply.metadata.parent_ticket_id for reply in replies) == sorted(tools)
        assert (await remit.service.streams.verify()).problems == ()
        assert kills > 0


@pytest.mark.slow
async def test_killed_runners_leave_no_ticket_undone_and_none_done_twice(tmp_path: Path) -> None:
    await work_through(str(tmp_path / "journal.db"), tmp_path)


@pytest.mark.slow
async def test_the_same_on_postgresql(tmp_path: Path, storage: PostgresStorage) -> None:
    await work_through(storage.url, tmp_path)
