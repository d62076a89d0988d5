"""Client libraries behind `remit mcp wrap`: a read runs; a write is asked about, approved elsewhere, and runs once.

Two run always, the others if that is asked for: `make clients`, REMIT_TEST_CLIENTS=1.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from remit_testing.models import ModelServer, Scene, SceneCall
from tests.parts.adapters.completions import scripted
from tests.peers import servers

pytestmark = pytest.mark.slow

PROGRAMS: Final = Path(__file__).with_name("clients")
BUILT: Final = servers.ROOT / "build" / "clients"
NOTES: Final = servers.ROOT / "examples" / "mcp" / "notes.py"
REMIT: Final = str(Path(sys.executable).parent / "remit")
READ: Final[tuple[str, dict[str, Any]]] = ("read_note", {"topic": "tea"})
WRITE: Final[tuple[str, dict[str, Any]]] = ("write_note", {"topic": "milk", "text": "buy"})


class Library(NamedTuple):
    """A library, the interpreter that has it, and its program."""

    name: str
    command: tuple[str, ...]


def in_python(name: str, program: str, python: str = "") -> Library:
    """A library of an environment of its own, or of one that tests have anyway."""
    return Library(name, (python or str(BUILT / name / "bin" / "python"), str(PROGRAMS / program)))


def in_node(name: str, modules: Path, major: str) -> Library:
    return Library(name, (servers.NODE22, str(PROGRAMS / "with_typescript_sdk.mjs"), str(modules), major))


OURS: Final = [
    in_python("python-sdk-1.30", "with_python_sdk_1.py", str(servers.PEERS / "git" / "bin" / "python")),
    in_node("typescript-sdk-1", servers.MODULES, "1"),
]
OTHERS: Final = [
    in_python("python-sdk-2", "with_python_sdk_2.py", sys.executable),
    in_python("python-sdk-1.12", "with_python_sdk_1.py"),
    in_python("fastmcp", "with_fastmcp.py"),
    in_python("langchain", "with_langchain.py"),
    in_node("typescript-sdk-2", BUILT / "npm" / "node_modules", "2"),
]
AGENTS: Final = [
    in_python("openai-agents", "with_openai_agents.py"),
    in_python("pydantic-ai", "with_pydantic_ai.py"),
]
ASKED: Final = bool(os.environ.get("REMIT_TEST_CLIENTS"))
apart = pytest.mark.skipif(not ASKED, reason="`make clients` installs the client libraries")
CALLERS: Final = [
    *(pytest.param(library, id=library.name) for library in OURS),
    *(pytest.param(library, id=library.name, marks=apart) for library in OTHERS),
]


class Place(NamedTuple):
    """The folder of a client, with the notes and the journal."""

    folder: Path

    def written(self) -> str | None:
        """The note that a client wrote."""
        text: str | None = json.loads((self.folder / "notes.json").read_text()).get("milk")
        return text

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8", "REMIT_TRUST": "1"}

    def remit(self, *words: str) -> list[str]:
        return [REMIT, "--journal", str(self.folder / "journal.db"), *words]

    def wrap(self, *server: str) -> list[str]:
        """Remit in front of a server."""
        levels = ["--level", "read_note=L0", "--level", "good=L0"]
        return self.remit("mcp", "wrap", "--name", "notes", *levels, "--", sys.executable, *server)

    async def approve(self) -> None:
        """Approve the only open question, as a person in a terminal does."""
        (question,) = json.loads(await run(self.remit("confirm", "--json"), self.env, self.folder))
        await run(self.remit("confirm", question["confirmation"], "--approve"), self.env, self.folder)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "notes.json").write_text('{"tea": "black"}')
    return Place(tmp_path)


async def run(words: Sequence[str], env: dict[str, str], folder: Path) -> str:
    """What a program says, which has to succeed."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *words, env=env, cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


class Caller:
    """A program that makes a call for each line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._stderr = process.stderr

    async def next(self) -> list[Any]:
        line = await self._stdout.readline()
        assert line, (await self._stderr.read()).decode()
        answer: list[Any] = json.loads(line)
        return answer

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        """Whether the call failed, and its first text."""
        self._stdin.write(json.dumps([name, arguments]).encode() + b"\n")
        failed, text, *_ = await self.next()
        return failed, text


@asynccontextmanager
async def caller(library: Library, place: Place, server: list[str]) -> AsyncIterator[Caller]:
    """A program behind Remit, which ends with its stdin."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *library.command, *server, env=place.env, cwd=place.folder, stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert process.stdin is not None
    try:
        yield Caller(process)
        process.stdin.close()
        _, err = await process.communicate()
        assert process.returncode == 0, err.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.mark.parametrize("library", CALLERS)
async def test_a_write_is_approved_elsewhere_and_runs_exactly_once(library: Library, place: Place) -> None:
    notes = place.wrap(str(NOTES), str(place.folder / "notes.json"))
    async with caller(library, place, notes) as client:
        assert await client.next() == ["read_note", "write_note"]
        assert await client.call(*READ) == (False, "black")
        assert "CONFIRMATION_REQUIRED" in (await client.call(*WRITE))[1]
        assert place.written() is None
        await place.approve()
        assert await client.call(*WRITE) == (False, "noted milk")
        assert place.written() == "buy"
        assert "CONFIRMATION_REQUIRED" in (await client.call(*WRITE))[1]


@pytest.mark.parametrize("library", CALLERS)
async def test_a_good_tool_is_listed_beside_thirty_badly_worded_ones(library: Library, place: Place) -> None:
    async with caller(library, place, place.wrap(str(PROGRAMS / "badly_worded.py"))) as client:
        assert "good" in await client.next()
        assert await client.call("good", {}) == (False, "hello")


@apart
@pytest.mark.parametrize("library", AGENTS, ids=lambda library: library.name)
async def test_a_waiting_call_ends_no_run_of_an_agent(library: Library, place: Place) -> None:
    notes = place.wrap(str(NOTES), str(place.folder / "notes.json"))
    for number, calls in enumerate([[READ, WRITE], [WRITE, WRITE]]):
        scenes = [
            Scene(calls=(SceneCall(name, json.dumps(arguments), f"call_{turn}"),), stop="tools")
            for turn, (name, arguments) in enumerate(calls)
        ]
        async with ModelServer(scripted([*scenes, Scene(text=("All is done.",))])).listening() as server:
            model = {
                "OPENAI_BASE_URL": f"{server.url}/v1",
                "OPENAI_API_KEY": "k3y",
                "OPENAI_AGENTS_DISABLE_TRACING": "1",
            }
            waiting = {"REMIT_MCP_WAITING": "result"}
            said = await run([*library.command, *notes], {**place.env, **model, **waiting}, place.folder)
            told = json.dumps(server.received[-1].body)
        assert said.strip() == "All is done."
        assert "CONFIRMATION_REQUIRED" in told
        assert place.written() == (None if number == 0 else "buy")
        if number == 0:
            assert "black" in told
            await place.approve()
