"""A recipe that uses the tools of an MCP server: it writes a note once a person approved it, and reads it without asking."""

import asyncio
import sys
from pathlib import Path

from remit import Remit, Run, recipe
from remit.settings import load

SERVER = {
    "name": "notes",
    "command": [sys.executable, str(Path(__file__).parents[1] / "mcp" / "notes.py")],
    "level": "L1",
    "tools": {"read_note": "L0"},
}


@recipe("remember", version="1")
async def remember(run: Run, topic: str, text: str) -> str:
    """Write a note on a topic, and read it back."""
    await run.call("mcp.notes.write_note", {"topic": topic, "text": text})
    found = await run.call("mcp.notes.read_note", {"topic": topic})
    return str(found.value)


async def main() -> None:
    """Start the job, answer its question as a person would, and look at what was recorded."""
    settings = load(env={}, flags={"mcp.servers": [SERVER]})
    async with Remit(":memory:", settings=settings, recipes=[remember]) as remit:
        job = await remit.start(remember("tea", "milk first"))
        async for question in remit.questions(job.id):
            print(f"asked: {question.tool} {question.args}")
            await remit.service.confirmations.decide(
                question.confirmation, "approve", digest=question.digest, by="grace"
            )
        print(await job)
        for step in (await job.view()).steps:
            print(step.step, step.name, step.state, step.meta.result_preview)
        print("replay:", (await remit.replay(job.id)).verdict)


if __name__ == "__main__":
    asyncio.run(main())
