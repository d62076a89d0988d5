"""A process that undoes calls under a pot, and kills itself before or after a write of the journal that it is told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from remit import JobEndedError, Remit, Run, recipe, tool
from remit.journal.journal import Journal
from remit.settings import load


@tool("shop.book", level="L1")
async def book(what: str) -> str:
    """Book."""
    return what


@tool("shop.cancel", level="L1", idempotent=True)
async def cancel(what: str) -> str:
    """Cancel."""
    return what


@recipe("trip")
async def trip(run: Run) -> None:
    for what in ("hotel", "flight"):
        await run.call("shop.book", {"what": what}, undo=("shop.cancel", {"what": what}))
    raise ValueError("no car left")


def settings_in(folder: Path) -> Any:
    rules: list[Any] = [{"effect": "allow", "tools": ["shop.book"], "limit": {"pot": "trips"}}]
    rules.append({"effect": "allow", "tools": ["shop.cancel"]})
    pots = {"trips": {"per": "month", "calls": 2}}
    flags = {"policy.rules": rules, "policy.pots": pots, "journal.url": str(folder / "j.db")}
    return load(cwd=folder, file=None, env={}, flags=flags)


def mortal(kind: str, when: str) -> None:
    """Have the write of an event of this kind end the process, before or after its work."""
    commit, append = Journal.commit, Journal.append

    async def dies(work: Any, *kinds: str) -> Any:
        if kind in kinds and when == "before":
            work.close()
            os.kill(os.getpid(), signal.SIGKILL)
        result = await work
        if kind in kinds:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def deadly_commit(journal: Journal, *drafts: Any, **options: Any) -> Any:
        kinds = [name for draft in drafts for name, _ in draft.events]
        return dies(commit(journal, *drafts, **options), *kinds)

    def deadly_append(journal: Journal, writer: Any, *payloads: Any, **options: Any) -> Any:
        kinds = [payload.KIND for payload in payloads]
        options |= {"synced": True} if kind in kinds else {}
        return dies(append(journal, writer, *payloads, **options), *kinds)

    for name, deadly in (("commit", deadly_commit), ("append", deadly_append)):
        setattr(Journal, name, deadly)


async def main(folder: Path, kind: str, when: str) -> None:
    async with Remit(settings=settings_in(folder), recipes=[trip], tools=[book, cancel]) as remit:
        rows = await remit.service.jobs.rows()
        job = rows[0].job if rows else (await remit.start(trip())).id
        mortal(kind, when)
        try:
            await remit.job(job)
        except JobEndedError as error:
            sys.stdout.write(str(error))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
