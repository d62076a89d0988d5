"""Where measurements are taken, and how a peer is run: a program of bench/peers in an environment of its own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.measure import Mark, Peer, PeerMissingError, Reading, Sample

LANGGRAPH, DBOS_SQLITE, DBOS_POSTGRES, RESTATE = (
    "LangGraph, SqliteSaver",
    "DBOS on SQLite",
    "DBOS on PostgreSQL",
    "Restate",
)
TEMPORAL = "Temporal's replayer"
PYDANTIC_AI, PYDANTIC_AI_DBOS, LANGGRAPH_AGENT = (
    "pydantic-ai, nothing kept",
    "pydantic-ai on DBOS, SQLite",
    "LangGraph agent, SqliteSaver",
)
PROCRASTINATE = "Procrastinate on PostgreSQL"
LLM_SANDBOX = "llm-sandbox, in one container of podman"
_ENGINES = {
    LANGGRAPH: "langgraph_sqlite",
    DBOS_SQLITE: "dbos_sqlite",
    DBOS_POSTGRES: "dbos_postgres",
    RESTATE: "restate",
}
_PROGRAMS = {
    **_ENGINES,
    TEMPORAL: "temporal",
    PYDANTIC_AI: "pydantic_ai_agent",
    PYDANTIC_AI_DBOS: "pydantic_ai_dbos",
    LANGGRAPH_AGENT: "langgraph_agent",
    PROCRASTINATE: "procrastinate_postgres",
    LLM_SANDBOX: "llm_sandbox",
}
"""By the name of a peer, its program in bench/peers."""
ROOT = Path(__file__).parents[1]
"""Where programs of this package are started."""
_PYTHON = ROOT / ".venv-bench/bin/python"


class Lab(NamedTuple):
    """A folder to work in, and whether peers are measured."""

    folder: Path
    peers: bool = False

    def rivals(self, workload: str, marks: Mapping[str, Mark] | None = None) -> list[Peer]:
        """Every durable engine at a workload, where peers are measured; `marks` by the name of the peer."""
        marks = marks or {}
        return [peer for name in _ENGINES for peer in self.rival(name, workload, marks.get(name))]

    def rival(self, name: str, workload: str, mark: Mark | None) -> list[Peer]:
        """One of them, or none where peers are not measured."""
        return [Peer(name, _sample(self.folder, _PROGRAMS[name], workload), mark)] if self.peers else []


class Said(msgspec.Struct, frozen=True):
    """The line that a peer's program prints."""

    rate: float = 0.0
    """Steps per second; of a measurement in milliseconds, these."""
    cpu_us: float | None = None
    """Processor microseconds per step, of the program and its server."""
    missing: str = ""
    """Why it cannot run here."""


def _sample(folder: Path, program: str, workload: str) -> Sample:
    async def sample() -> Reading:
        if not _PYTHON.exists():
            raise PeerMissingError("there is no .venv-bench; `make bench PEERS=1` makes it")
        with tempfile.TemporaryDirectory(dir=folder) as own:
            process = await asyncio.create_subprocess_exec(
                _PYTHON,
                "-m",
                f"bench.peers.{program}",
                workload,
                own,
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await process.communicate()
        reading = heard(out)
        if process.returncode or reading is None:
            last = err.decode(errors="replace").strip().splitlines()[-1:]
            raise PeerMissingError(f"{program} ended with {process.returncode}: {''.join(last)[:200]}")
        if reading.missing:
            raise PeerMissingError(reading.missing)
        return Reading(reading.rate, reading.cpu_us)

    return sample


def heard(out: bytes) -> Said | None:
    """The last line of a program that is one of ours; libraries print other things."""
    for line in reversed(out.splitlines()):
        if line.startswith(b"{"):
            return msgspec.json.decode(line, type=Said)
    return None
