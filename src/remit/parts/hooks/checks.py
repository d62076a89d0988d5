"""The checks of connected agents in `remit doctor`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from remit.capability import Check, Look
from remit.parts.hooks.daemon import GuardFolder

if TYPE_CHECKING:
    from remit.parts.hooks.hook import AgentName


async def check_agents(look: Look) -> Iterable[Check]:
    """Say of each connected agent what switches its hooks off, and if programs may be run whether it asks."""
    agents = GuardFolder(look.settings, os.environ).agents()
    return [check for agent in agents for check in await asyncio.to_thread(_checks, agent, live=look.live)]


def _checks(agent: AgentName, *, live: bool) -> list[Check]:
    from remit.parts.hooks.places import off_lines  # noqa: PLC0415 - only with an agent
    from remit.parts.hooks.probe import probe  # noqa: PLC0415 - likewise

    project = Path.cwd()
    if live:
        return [
            Check("guard", "ok", f"{agent}, {found.where}: gate asked")
            if found.answer == "asked"
            else Check("guard", "fail", f"{agent}, {found.where}: {found.answer}", found.why)
            for found in probe(agent, project, os.environ)
        ]
    if off := off_lines(agent, project, os.environ):
        return [Check("guard", "warn", f"{agent} may not ask: {'; '.join(off)}", f"Try it: remit guard status {agent}")]
    return [Check("guard", "ok", f"{agent} is connected; `remit guard status {agent}` tries whether it asks")]
