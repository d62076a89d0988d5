"""A Remit with targets: rounds of following and delivering one after the other, or all of it as workers do it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from remit import Code, Remit, Run, recipe, tool
from remit.cli.services import keep_part
from remit.errors import ProviderError
from remit.journal.event import LeaseClaim
from remit.parts.notify.notifications import KIND, Follower, NotificationRow, Notifications, TargetView, add_target
from remit.parts.notify.people import read_targets
from remit.parts.notify.sender import AttemptEnd, Notice, Sender
from remit.parts.notify.target import NotifyTarget
from remit.parts.notify.wiring import work_on_notifications
from remit.parts.notify.work import NotificationWork

MINUTE = 60.0
CONSOLE = "https://remit.example"


@tool("shop.refund", level="L1")
async def refund(customer: str, cents: int, api_key: str) -> int:
    """Give money back."""
    return cents if customer and api_key else 0


@recipe("repay")
async def repay(run: Run, customer: str = "ada", cents: int = 450) -> int:
    """Ask before money goes back."""
    args = {"customer": customer, "cents": cents, "api_key": "sk-abcdef123456"}
    return int((await run.call("shop.refund", args)).value)


@recipe("ask")
async def ask(run: Run) -> bool:
    """Ask a question of its own."""
    return (await run.confirm("Restart <web> now?", details={})).approved


@recipe("fails")
async def fails(run: Run) -> None:
    """Fail."""
    await run.now()
    raise ValueError("the bank says no")


@tool("shop.ship", level="L1")
async def ship(parcel: int) -> int:
    """Break off without an answer, so that no one knows what happened."""
    raise ProviderError(f"the line to the harbour broke at parcel {parcel}", cause=Code.ConnectionError)


@recipe("ships")
async def ships(run: Run, parcel: int = 7) -> int:
    """Make a call whose outcome is unknown."""
    return int((await run.call("shop.ship", {"parcel": parcel})).value)


CODE: dict[str, Any] = {"tools": [refund, ship], "recipes": [repay, ask, fails, ships]}


class Script:
    """A sender that keeps what it is given, and answers as it is told; without more to say, it takes the message."""

    def __init__(self) -> None:
        self.sent: list[Notice] = []
        self.answers: list[AttemptEnd] = []

    async def send(self, target: NotifyTarget, message: Notice) -> AttemptEnd:
        self.sent.append(message)
        return self.answers.pop(0) if self.answers else AttemptEnd(ok=True, words="taken")

    @property
    def told(self) -> list[str]:
        """The events, in order."""
        return [message.event for message in self.sent]


class Teller:
    """Tells the targets of a Remit, a round at a time."""

    def __init__(self, remit: Remit, sender: Script | Sender) -> None:
        self.remit = remit
        self.journal = remit.runtime.journal
        self.targets = read_targets(remit.settings)
        self.work = NotificationWork(self.journal, self.targets, sender, CONSOLE)  # type: ignore[arg-type] # a script
        self.together = False
        """Whether attempts that are due are made at the same time, as an engine does."""
        self.seen = Notifications(self.journal, self.targets, sender, CONSOLE)  # type: ignore[arg-type] # the same

    async def round(self) -> None:
        """Read the journal to its end for each target, then make every attempt that is due."""
        for target in self.targets:
            await add_target(self.journal, target.name)
        for lease in await self.journal.claim(self.terms()):
            execution = self.work.take(lease, "")
            if isinstance(execution, Follower):
                while await execution.catch_up():
                    pass
                await execution.give_up()
            else:
                await execution.give_up()
        attempts = []
        for lease in await self.journal.claim(self.terms()):
            execution = self.work.take(lease, "")
            if isinstance(execution, Follower):
                await execution.give_up()
            elif self.together:
                attempts.append(execution.run())
            else:
                await execution.run()
        await asyncio.gather(*attempts)

    def terms(self, owner: str = "teller") -> LeaseClaim:
        now = self.journal.clock.now()
        return LeaseClaim(
            kind=KIND,
            owner=owner,
            now=now,
            lease_until=now + 30_000_000,
            limit=100,
            routes=self.work.routes,
            state="running",
        )

    async def view(self, target: str = "oncall") -> TargetView:
        return next(view for view in await self.seen.views(limit=100) if view.target == target)

    async def rows(self, target: str = "oncall") -> list[NotificationRow]:
        """Its notifications, oldest first."""
        return list(reversed((await self.view(target)).last))


@asynccontextmanager
async def telling(remit: Remit) -> AsyncIterator[Remit]:
    """A Remit that tells its targets as a worker does, for the length of the block."""
    async with remit:
        upkeep = work_on_notifications(remit, asyncio.Event(), "worker")
        assert upkeep is not None
        task = asyncio.create_task(keep_part(remit, upkeep))
        try:
            yield remit
        finally:
            task.cancel()
            await asyncio.wait([task])


async def until_closed(remit: Remit, count: int) -> None:
    """Wait until so many notifications came to their end."""
    mark = 0
    while True:
        mark = await remit.runtime.journal.changed(mark)
        states = await remit.runtime.journal.counts(KIND)
        if sum(states.get(state, 0) for state in ("sent", "dropped", "failed")) >= count:
            return
