from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from remit import Run, recipe, tool
from remit.cli.job_worker import _stopped
from remit.jobs.state import JobHistory
from tests.opened import OpenRemit, until


async def test_no_call_begins_while_a_stopped_command_looks_which_ones_are_under_way(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, began = asyncio.Event(), asyncio.Event()

    @tool("memo.write")
    async def write() -> None:
        """Write for ever."""
        began.set()
        await asyncio.Event().wait()

    @recipe("memo")
    async def memo(run: Run) -> None:
        """Think, then write."""
        await gate.wait()
        await run.call("memo.write", {})

    allow = [{"effect": "allow", "tools": ["*"]}]
    async with remit_in(tools=[write], recipes=[memo], flags={"policy.rules": allow, "jobs.drain_seconds": 0}) as remit:
        job = await remit.start(memo())
        await until(remit, job.id, lambda row: row.state == "running")
        history = remit.service.jobs.history

        async def goes_on_meanwhile(job: str) -> JobHistory:
            found = await history(job)
            monkeypatch.setattr(remit.service.jobs, "history", history)
            gate.set()
            waiting = asyncio.create_task(began.wait())
            await asyncio.wait([waiting], timeout=1)  # long enough for a call that nothing keeps from beginning
            waiting.cancel()
            return found

        monkeypatch.setattr(remit.service.jobs, "history", goes_on_meanwhile)
        state: Any = SimpleNamespace(note=str)
        (left,) = await _stopped(state, remit, [job.id])
        assert not began.is_set()
        assert (left.risky, left.ended) == (False, False)
