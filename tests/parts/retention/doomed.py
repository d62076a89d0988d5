"""A process that prunes everything, until it is killed or done."""

from __future__ import annotations

import asyncio
from pathlib import Path

from remit import Remit
from remit.parts.retention.rule import RetentionRule, rule_for
from remit.settings import load
from tests.parts.audit.packages import GIVEN

YEAR = 365 * 86_400_000_000


def opened(folder: Path) -> Remit:
    """A Remit over the folder's journal that works on nothing."""
    flags = {"journal.url": str(folder / "journal.db"), "app.principal": "alice"}
    return Remit(settings=load(env={}, cwd=folder, flags=flags), work=False, **GIVEN)


def prune_until_killed(folder: str) -> None:
    """Archive and prune every job; the file `began` is there from the first moment on."""
    asyncio.run(_prune(Path(folder)))


async def _prune(folder: Path) -> None:
    async with opened(folder) as remit:
        rule, now = RetentionRule(keep="90d", archive=str(folder / "kept")), remit.clock.now() + YEAR
        await asyncio.to_thread((folder / "began").touch)
        await remit.service.retention.prune(lambda head: rule_for([rule], head, now), ("job",), compact=True)
