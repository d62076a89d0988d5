"""Three limits: of a job's calls, of an agent's tokens, and of what one person may spend on models in a day."""

import asyncio
import json
from pathlib import Path

from remit import CallError, Options, Remit, Run, recipe, tool
from remit.parts.agents.recipes import agent
from remit.settings import load

DAY = 4_900
SCRIPT = [{"call": [{"tool": "mail.count", "args": {"folder": "inbox"}}]}] * 5


@tool("mail.count", level="L0")
async def count(folder: str) -> int:
    """Count the messages in a folder."""
    return len(folder)


@recipe("counts")
async def counts(run: Run) -> str:
    """Count in more folders than the job may."""
    for folder in ("inbox", "drafts", "spam"):
        try:
            await run.call("mail.count", {"folder": folder})
        except CallError as error:
            return f"{folder}: {error.code.name}"
    return "all counted"


async def main() -> None:
    """Meet each limit once."""
    Path("script.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    flags = {"journal.url": ":memory:", "models.default": "scripted:script.json", "models.day_tokens": DAY}
    settings = load(cwd=Path.cwd(), file=None, env={}, flags=flags)
    async with Remit(settings=settings, tools=[count], recipes=[counts]) as remit:
        print(await remit.run(counts(), Options(budget={"max_calls": 2})))
        for question in ("Count my mail.", "Count it again."):
            worked = await remit.run(agent(question, tools=["mail.*"], tokens=4_600))
            print(f"{question} It ended by its {worked.ended}, after {worked.calls} calls")
        (row,) = await remit.service.usage.rows("principal")
        print("less than the day allows:", row.tokens <= DAY)


if __name__ == "__main__":
    asyncio.run(main())
