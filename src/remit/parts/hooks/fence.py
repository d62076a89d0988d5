"""An agent in the sandbox, where nothing that it starts can change the settings by which it asks the guard.

What it sees and cannot change says `remit.mcp_config.agent_ground`. The guard runs outside, and is started again if it
ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remit.mcp_config.agent_ground import GROUNDS, AgentNeeds, enclosed
from remit.parts.hooks.daemon import GuardFolder, start
from remit.process.terminal import EnclosedProgram

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.parts.hooks.hook import AgentName
    from remit.process.enclosure import Enclosures, Program


def fenced(agent: AgentName, command: Sequence[str], env: Mapping[str, str], guard: Path, needs: AgentNeeds) -> Program:
    """Return an agent as the program that it is in the sandbox, and make what keeps its settings. Raises OSError."""
    needs = msgspec.structs.replace(needs, reads=(str(guard), *needs.reads))
    return enclosed(command, env, Path.cwd(), needs, _refuse, makers=GROUNDS[agent].hosts)


def _refuse(place: str, reason: str) -> None:
    sys.stderr.write(f"remit guard: the sandbox refused {place}: {reason}\n")


async def run_fenced(
    program: Program, enclosures: Enclosures, folder: GuardFolder, serve: Sequence[str], clock: Clock
) -> int:
    """Run an agent to its end, with our stdin and output, and the guard beside it. Return its status.

    Raises OSError, and StateError: SANDBOX_UNAVAILABLE or POLICY_DENIED. It is never started without the sandbox.
    """
    await start(folder, serve, clock)
    try:
        return await EnclosedProgram(program, enclosures).run(_keep(folder, serve, clock))
    finally:
        await enclosures.close()


async def _keep(folder: GuardFolder, serve: Sequence[str], clock: Clock) -> None:
    """Have a guard outside for as long as this is awaited: it cannot be started from within. Raises OSError."""
    while True:
        await start(folder, serve, clock)
        reader, writer = await asyncio.open_unix_connection(folder.socket)
        try:
            await reader.read()  # a guard with a connection does not end
        except ConnectionError:
            pass
        finally:
            writer.close()
