"""A server, and a runner far from the journal, that are going to be killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Literal

from remit.client import RemoteRemit
from remit.parts.tickets.runner import RunnerConfig
from remit.service.requests import Requests
from remit.service.sessions import Sessions
from tests.client.conftest import serving
from tests.crash.ticket_worker import FOLDER, opened

Moment = Literal["accepted", "done", "recorded", "never"]
"""When the server dies: once it has taken the request, done what it asks, or recorded the answer."""
MOMENTS: Final[tuple[Moment, ...]] = ("accepted", "done", "recorded")
Method = Callable[..., Awaitable[Any]]


def serve_until_killed(url: str, folder: str, port: int, moment: Moment = "never") -> None:
    """Serve a journal and work on its jobs; die at `moment`. Entry point of a process."""
    FOLDER.append(Path(folder))
    if moment == "accepted":
        _die_after(Requests, "take")
        _die_before(Sessions, "call")
    elif moment == "done":
        _die_before(Requests, "answer")
        _die_after(Sessions, "call")
    elif moment == "recorded":
        _die_after(Requests, "answer")
        _die_after(Sessions, "call")

    async def main() -> None:
        async with opened(url, Path(folder)) as remit:
            remit.runtime.engine.start()
            async with serving(remit.service, port=port):
                await asyncio.Event().wait()

    asyncio.run(main())


def work_until_killed(url: str) -> None:
    """Work on a server's TOOL tickets. Entry point of a process."""

    async def main() -> None:
        async with RemoteRemit(url, "") as remit:
            tickets = remit.service.tickets
            config = RunnerConfig(owner=f"runner-{os.getpid()}", limit=4, lease_sec=1)
            await tickets.runner(config, tickets.executor()).run(asyncio.Event(), once=False)

    asyncio.run(main())


def _die_after(owner: type, name: str) -> None:
    method: Method = getattr(owner, name)

    async def dying(*args: Any, **given: Any) -> None:
        await method(*args, **given)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, dying)


def _die_before(owner: type, name: str) -> None:
    async def dying(*_args: Any, **_given: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, dying)
