"""What the guard costs an agent's own call: both hooks as they are configured, and the gate."""

from __future__ import annotations

import asyncio
import json
import shlex
import tempfile
from pathlib import Path

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from remit import Remit
from remit.parts.hooks.daemon import GuardFolder, GuardServer
from remit.parts.hooks.guard import AgentTools, HookGuard
from remit.parts.hooks.places import make_client
from remit.settings import load

CALLS = 50
_MESSAGE = {
    "session_id": "s",
    "tool_use_id": "c",
    "tool_name": "Bash",
    "tool_input": {"command": "echo hi"},
    "cwd": "/",
}
_LOOP = 'i=0; while [ $i -lt {calls} ]; do sh -c {before} <"$1" >/dev/null; {after} <"$1" >/dev/null; i=$((i+1)); done'


async def hooked(_lab: Lab) -> list[Result]:
    """A call of an agent with its hook before and after; the floor starts two programs that do nothing."""
    with tempfile.TemporaryDirectory(prefix="g") as place:
        rules = [{"id": "all", "effect": "allow"}]
        settings = load(env={}, cwd=Path(place), flags={"policy.rules": rules})
        folder, message = GuardFolder(settings, {"XDG_DATA_HOME": place}), Path(place) / "message"
        client = make_client(folder, None)
        message.write_text(json.dumps(_MESSAGE))
        tools = AgentTools()

        async def loop(before: str, after: str) -> Reading:
            script = _LOOP.format(calls=CALLS, before=shlex.quote(before), after=after)
            watch = Watch()
            process = await asyncio.create_subprocess_exec("sh", "-c", script, "sh", str(message))
            assert await process.wait() == 0
            return watch.processor_millis(CALLS)

        async def sample() -> Reading:
            return await loop(client.words("claude", "before"), client.words("claude", "after"))

        async def floor() -> Reading:
            return await loop("/bin/true || exit 2", "/bin/true")

        async with Remit(settings=settings, providers=[tools], work=False) as remit:
            guard = HookGuard(remit, tools, mode="gate", hold_s=0)
            serving = asyncio.create_task(GuardServer(guard, remit.clock, idle_s=3_600).serve(folder))
            while not folder.socket.exists():
                await remit.clock.sleep(0.01)
            try:
                return await against(
                    "an agent's own call, guarded", "ms", sample, floor, "processor time", mark=Mark(2.5)
                )
            finally:
                serving.cancel()
                await asyncio.wait([serving])
