"""An agent of pydantic-ai on DBOS with SQLite in WAL mode: questions to the model and calls of tools are steps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import sqlalchemy
from dbos import DBOS
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability

from bench.peers.program import TURNS, Meter, asked
from bench.peers.pydantic_ai_agent import limits, model


@sqlalchemy.event.listens_for(sqlalchemy.Engine, "connect")
def _use_wal(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode = WAL")


@DBOS.step()
async def read(number: int) -> int:
    """Give the number back."""
    return number


def _run(calls: int, folder: Path) -> None:
    bound_agent: Any = Agent(model(TURNS, calls), name="bench", tools=[read], capabilities=[DBOSDurability()])

    @DBOS.workflow()
    async def work() -> str:
        result = await bound_agent.run("Read.", usage_limits=limits())
        return str(result.output)

    async def main() -> None:
        meter = Meter()
        await work()
        meter.start()
        await work()
        meter.stop(TURNS)

    url = f"sqlite:///{folder}/dbos.db"
    DBOS(config={"name": "bench", "log_level": "ERROR", "system_database_url": url, "max_executor_threads": 4})
    DBOS.launch()
    asyncio.run(main())
    DBOS.destroy()


if __name__ == "__main__":
    asked({"agent-1": 1, "agent-3": 3}, _run)
