"""`remit mcp serve --http` and `remit mcp wrap`, whose clients and servers are killed: nothing is left of them.

`REMIT_TEST_CALLS` sets the number of calls, 20,000 for docs/mcp.md; what was counted is printed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from subprocess import DEVNULL, PIPE
from time import perf_counter
from typing import Final, NamedTuple

import pytest

from remit.providers.mcp.supervisor import STABLE_S
from tests.mcp_server.agents import NOTES, REMIT, run
from tests.patience import PATIENCE_S
from tests.peers.client import INITIALIZE
from tests.providers.mcp.world import alive

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(sys.platform != "linux", reason="processes, files and memory are counted in /proc"),
]

CALLER: Final = Path(__file__).with_name("caller.py")
CALLS: Final = int(os.environ.get("REMIT_TEST_CALLS", "240"))
TOKEN: Final = "t0ken-of-ann"
AT_ONCE: Final = 6
EACH: Final = 12
"""Calls that a client makes, if it lives."""
SERVERS: Final = 3
KILL_EACH: Final = 60
"""Calls after which a server is killed."""
WRAPS: Final = max(1, CALLS // 2_000)
READ: Final = ("tools/call", {"name": "read_note", "arguments": {"topic": "tea"}})
MIB: Final = 1 << 20
GROWTH: Final = 24 * MIB
"""Bytes that the process may grow by in the second half of the calls: what an allocator and open sessions do."""
KNOWN: Final = {"ok", "CONFIRMATION_REQUIRED", "TOOL_UNAVAILABLE", "MCP_REQUIRED_UNAVAILABLE"}


class Place(NamedTuple):
    """The folder of one run, whose name stands in the command of every process of it."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "REMIT_TRUST": "1", "TOKEN": TOKEN}

    def remit(self, *words: str) -> list[str]:
        return [REMIT, "--config", str(self.folder / "remit.toml"), *words]

    def processes(self) -> set[int]:
        """Return the processes that run for it."""
        mark = str(self.folder).encode()
        return {pid for pid in _pids() if mark in _bytes(pid, "cmdline") and alive(pid)}


class Size(NamedTuple):
    """What a process holds."""

    files: int
    memory: int

    @classmethod
    def of(cls, pid: int) -> Size:
        pages = int(_bytes(pid, "statm").split()[1])
        return cls(sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()), pages * os.sysconf("SC_PAGE_SIZE"))


class Run:
    """Clients that are killed, one after another, and the servers that are killed meanwhile."""

    def __init__(self, place: Place, url: str, server: int) -> None:
        self._place = place
        self._url = url
        self._server = server
        self._chance = random.Random(11)
        self._seeds = count()
        self._seen: dict[int, float] = {}
        self.outcomes: Counter[str] = Counter()
        self.deaths: Counter[str] = Counter()

    async def until(self, calls: int) -> None:
        """Have clients make calls until there were so many."""

        async def clients() -> None:
            while self.outcomes.total() < calls:
                await self._client()

        await asyncio.gather(*(clients() for _ in range(AT_ONCE)))

    async def _client(self) -> None:
        """Run a client; every other one is killed in the middle of a call."""
        seed = next(self._seeds)
        last = self._chance.randrange(EACH) if seed % 2 else EACH
        command = [sys.executable, "-I", "-S", str(CALLER), self._url, TOKEN, str(seed), str(EACH)]
        client = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert client.stdout is not None
        answers = 0
        while answers < last and (line := await client.stdout.readline()):
            answers += 1
            self.outcomes[line.decode().strip()] += 1
            if self.outcomes.total() % KILL_EACH == 0:
                self._kill_a_server()
        if answers == last < EACH:
            client.kill()
            self.deaths["clients killed"] += 1
        rest, _ = await client.communicate()
        self.outcomes.update(rest.decode().split())
        if client.returncode == 9:
            self.deaths["clients that died in a dialog"] += 1

    def _kill_a_server(self) -> None:
        """Kill a server behind Remit, if one has lived longer than those of a crash loop, which is parked."""
        servers = [pid for pid in self._place.processes() if str(NOTES).encode() in _bytes(pid, "cmdline")]
        now = perf_counter()
        self._seen = {pid: self._seen.get(pid, now) for pid in servers if _parent(pid) == self._server}
        first = not self.deaths["servers killed"]
        mine = sorted(pid for pid, since in self._seen.items() if first or now - since > STABLE_S)
        if mine:
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(mine), signal.SIGKILL)
                self.deaths["servers killed"] += 1


@pytest.fixture
def place(tmp_path: Path) -> Place:
    notes = [tmp_path / f"notes{number}.json" for number in range(SERVERS)]
    for file in notes:
        file.write_text('{"tea": "black", "milk": "white", "rice": "long", "soup": "hot"}')
    servers = [
        f'[[mcp.servers]]\nname = "n{number}"\ntools = {{ read_note = "L0" }}\n'
        f"command = {json.dumps([sys.executable, '-I', '-S', str(NOTES), str(file)])}\n"
        for number, file in enumerate(notes)
    ]
    client = '[[clients]]\nprincipal = "ann"\ntoken = "${TOKEN}"\nscopes = ["call", "decide"]\ndialog = true\n'
    (tmp_path / "remit.toml").write_text("\n".join([*servers, client]))
    return Place(tmp_path)


@asynccontextmanager
async def served(place: Place) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Serve over HTTP; the process and its URL."""
    pipe = asyncio.subprocess.PIPE
    command = place.remit("mcp", "serve", "--http", "--port", "0")
    with (place.folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, env=place.env, cwd=place.folder, stdin=pipe, stdout=pipe, stderr=log
        )
    assert process.stdout is not None
    try:
        yield process, (await process.stdout.readline()).decode().strip()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def test_nothing_is_left_of_clients_and_servers_that_are_killed(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(place) as (process, url):
        work = Run(place, url, process.pid)
        await work.until(CALLS // 8)  # everything is imported, and every server was up
        before = Size.of(process.pid)
        began = perf_counter()
        await work.until(CALLS // 2)
        middle = Size.of(process.pid)
        await work.until(CALLS)
        took_s = perf_counter() - began
        after = Size.of(process.pid)
        processes = place.processes()
    waiting = json.loads(await run(place.remit("confirm", "--json"), place.env, place.folder))
    with capsys.disabled():
        print(  # noqa: T201 - the report of a run by hand
            f"\n{dict(work.outcomes)}, {dict(work.deaths)}; {CALLS - CALLS // 8} calls in {took_s:.0f} s;"
            f" {len(processes)} processes, then {len(place.processes())}; {len(waiting)} open questions;"
            f" files {before.files}, {middle.files}, {after.files};"
            f" MiB {before.memory / MIB:.0f}, {middle.memory / MIB:.0f}, {after.memory / MIB:.0f}"
        )
    assert set(work.outcomes) <= KNOWN
    assert work.outcomes["ok"] >= work.outcomes.total() // 2
    assert all(work.deaths[kind] for kind in ("clients killed", "clients that died in a dialog", "servers killed"))
    assert len(processes) <= 1 + SERVERS
    assert after.files <= before.files + SERVERS * 3, "a server that starts has three pipes"
    assert after.memory - middle.memory < GROWTH
    assert place.processes() == set()
    assert (place.folder / "log").read_text().count("Traceback") == 0
    alike = Counter((question["tool"], json.dumps(question["args"])) for question in waiting)
    assert all(number <= AT_ONCE for number in alike.values()), "the same call meets the same question, if it is free"


@pytest.mark.parametrize("end", ["client", "wrap"])
def test_nothing_is_left_of_a_wrap_whose_client_or_self_is_killed(place: Place, end: str) -> None:
    words = place.remit("mcp", "wrap", "--name", "notes", "--level", "read_note=L0", "--")
    server = [sys.executable, "-I", "-S", str(NOTES), str(place.folder / "notes0.json")]
    for _ in range(WRAPS):
        with subprocess.Popen(
            [*words, *server], env=place.env, cwd=place.folder, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
        ) as wrap:
            assert wrap.stdin is not None
            assert wrap.stdout is not None
            answer = b""
            for number, (method, params) in enumerate((("initialize", INITIALIZE), READ)):
                message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                wrap.stdin.write(json.dumps(message).encode() + b"\n")
                wrap.stdin.flush()
                answer = wrap.stdout.readline()
            assert b"black" in answer
            ends = [os.pidfd_open(pid) for pid in place.processes()]
            assert len(ends) == 2
            if end == "wrap":
                wrap.kill()
            else:  # the kernel closes what a dead client had open
                wrap.stdin.close()
                wrap.stdout.close()
            for process in ends:
                select.select([process], [], [], PATIENCE_S)
                os.close(process)
            assert place.processes() == set()


def _pids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _bytes(pid: int, name: str) -> bytes:
    """Return a file of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _parent(pid: int) -> int:
    stat = _bytes(pid, "stat").rpartition(b")")[2].split()
    return int(stat[1]) if stat else 0
