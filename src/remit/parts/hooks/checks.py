"""The checks of connected agents in `remit doctor`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.capability import Check, Look
from remit.errors import JournalError
from remit.journal.event import HeadQuery
from remit.parts.hooks.daemon import GuardFolder
from remit.record.heads import SESSION
from remit.record.teller import BEGIN_UNSEEN

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.parts.hooks.hook import AgentName

_LATEST: Final = 20
"""Sessions that are looked at, of all agents."""
UNSEEN: Final = "Its hooks were off, or it was connected meanwhile: try it with `remit guard status`."


async def check_agents(look: Look) -> Iterable[Check]:
    """Say of each connected agent what switches its hooks off, and if programs may be run whether it asks."""
    agents = GuardFolder(look.settings, os.environ).agents()
    checks = [check for agent in agents for check in await asyncio.to_thread(_checks, agent, live=look.live)]
    with suppress(JournalError):  # which has a check of its own
        if agents:
            async with look.open() as remit:
                unseen = await sessions_unseen(remit.runtime.journal, agents)
            checks += [
                Check("guard", "warn", f"{agent}, {session}: {BEGIN_UNSEEN}", UNSEEN) for agent, session in unseen
            ]
    return checks


async def sessions_unseen(journal: Journal, agents: Collection[AgentName]) -> list[tuple[AgentName, str]]:
    """Return sessions of agents, among the latest, of which a call was the first word."""
    heads = await journal.heads(HeadQuery(kind=SESSION, labels={"face": "hook"}, limit=_LATEST))
    unseen = [head for head in heads if head.labels.get("begin") == "unseen"]
    return [
        (agent, head.stream.partition("/")[2])
        for head in unseen
        for agent in agents
        if head.labels["client_session"].startswith(f"{agent}/")
    ]


def _checks(agent: AgentName, *, live: bool) -> list[Check]:
    from remit.parts.hooks.places import off_lines  # noqa: PLC0415 - only with an agent
    from remit.parts.hooks.probe import probe  # noqa: PLC0415 - likewise

    project = Path.cwd()
    if live:
        return [
            Check("guard", "ok", f"{agent}, {probed.where}: gate asked")
            if probed.answer == "asked"
            else Check("guard", "fail", f"{agent}, {probed.where}: {probed.answer}", probed.detail)
            for probed in probe(agent, project, os.environ)
        ]
    if off := off_lines(agent, project, os.environ):
        return [Check("guard", "warn", f"{agent} may not ask: {'; '.join(off)}", f"Try it: remit guard status {agent}")]
    return [Check("guard", "ok", f"{agent} is connected; `remit guard status {agent}` tries whether it asks")]
