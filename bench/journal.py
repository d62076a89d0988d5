"""The journal alone, and the gateway without one."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from bench import floors
from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.subject import read, remit_in
from remit.clock import SystemClock
from remit.gateway.call import GateRequest
from remit.gateway.pipeline import Gateway
from remit.gateway.services import Services
from remit.journal.blobs import BlobRef
from remit.journal.event import Commit
from remit.journal.journal import Journal
from remit.journal.kinds import ToolInvocationStarted
from remit.journal.sqlite.store import SqliteStore
from remit.tools.provider import CallContext

TASKS, EACH, CALLS = 64, 100, 3_000
_PAYLOAD = BlobRef("sha256:" + "0" * 64, 1, "x" * 250)


def invocation() -> ToolInvocationStarted:
    """An event about as large as the floor's row."""
    return ToolInvocationStarted(invocation_id="i", step="1", tool_name="t", args_blob=_PAYLOAD)


async def appends(lab: Lab) -> list[Result]:
    """Durable appends from 64 tasks at once."""

    async def sample() -> Reading:
        with tempfile.TemporaryDirectory(dir=lab.folder) as own:
            journal = Journal(SqliteStore(str(Path(own) / "journal.db"), SystemClock()))

            async def one(number: int) -> None:
                event = invocation()
                writer = await journal.create(f"bench/{number}", "bench", event)
                for _ in range(EACH):
                    await journal.append(writer, event, synced=True)

            watch = Watch()
            await asyncio.gather(*(one(number) for number in range(TASKS)))
            rate = watch.rate(TASKS * EACH)
            await journal.close()
            return rate

    async def floor() -> Reading:
        return await floors.grouped(lab.folder, TASKS * EACH, TASKS)

    return await against(
        "append, durable, 64 tasks",
        "per second",
        sample,
        floor,
        "floor: SQLite FULL, groups of 64",
        mark=Mark(0.4, "floor"),
    )


class _Nothing:
    """A store that takes commits and keeps none, so that what is left is the gateway."""

    url = ":none:"
    backlog = 0
    cut = compact = snapshot = missing = answers = leases = routes = wakes = integrity = None
    tallies = due = drained = counts = None

    def submit(self, commit: Commit) -> None:
        if commit.on_done is not None:
            commit.on_done(None)


async def gateway(lab: Lab) -> list[Result]:
    """One call through every stage, with nothing kept."""

    async def sample() -> Reading:
        async with remit_in(lab.folder) as remit:
            journal = Journal(_Nothing(), SystemClock())  # type: ignore[arg-type]
            writer = journal.writer("session/ses_06000000000000000000000000", "session")
            services = {name: getattr(remit.runtime.services, name) for name in Services.__struct_fields__}
            gate = Gateway(Services(**{**services, "journal": journal}))
            watch = Watch()
            for number in range(CALLS):
                await gate.call(
                    GateRequest(tool="bench.read", args={"number": number}, step="1", principal="bench"), writer
                )
            return watch.processor_micros(CALLS)

    async def floor() -> Reading:
        context = CallContext(
            stream="s",
            step="1",
            invocation_id="i",
            idempotency_key="k",
            attempt=1,
            principal="p",
            trace_id="t",
            span_id="s",
            timeout_s=1.0,
            now=0,
            progress=lambda _done, _total, _message: None,
        )
        watch = Watch()
        for number in range(CALLS):
            async with asyncio.timeout(1):
                await read.invoke({"number": number}, context)
        return watch.processor_micros(CALLS)

    return await against(
        "gateway alone, one call",
        "µs",
        sample,
        floor,
        "floor: the bare tool within a deadline; both by processor time",
        mark=Mark(36),
    )
