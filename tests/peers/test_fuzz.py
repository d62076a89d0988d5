"""Messages at random, seeded, directly and through `remit mcp wrap`: bytes in, and what the SDKs of both languages saw.

REMIT_TEST_FUZZ=100000 says how many; each difference has its row, with its reason, in `tests.peers.fuzz.differences`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.patience import PATIENCE_S
from tests.peers.fuzz.differences import difference
from tests.peers.fuzz.messages import Sent, from_client, from_server
from tests.peers.servers import MODULES, NODE22

HERE: Final = Path(__file__).parent / "fuzz"
REMIT: Final = str(Path(sys.executable).parent / "remit")
NUMBER: Final = int(os.environ.get("REMIT_TEST_FUZZ", "240"))
"""Messages of all tests together."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120 + NUMBER // 20)]
SEED: Final = int(os.environ.get("REMIT_TEST_FUZZ_SEED", "1"))
PYTHON: Final = (sys.executable, "-I")
NODE: Final = (NODE22,)
SERVERS: Final = {
    "python": (*PYTHON, str(HERE / "server.py")),
    "typescript": (*NODE, str(HERE / "server.mjs"), str(MODULES)),
}
CLIENTS: Final = {
    "python": (*PYTHON, str(HERE / "client.py")),
    "typescript": (*NODE, str(HERE / "client.mjs"), str(MODULES)),
}
BYTES: Final = (sys.executable, "-I", "-S", str(HERE / "bytes.py"))
HELLO: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
FENCES: Final = 3
"""Times in a row that a server answers a ping before what it has not answered counts as not answered."""


def wrapped(command: Sequence[str], tool: str) -> tuple[str, ...]:
    """The command behind Remit."""
    return (REMIT, "mcp", "wrap", "--name", "fuzz", "--level", f"{tool}=L0", "--", *command)


class Peer:
    """A process that is sent lines, and what it says."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._fences = 0

    def send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data + b"\n")

    async def line(self) -> Any:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = await self._process.stdout.readline()
        assert line, "it ended"
        try:
            return json.loads(line)
        except RecursionError:
            return {"deep": True}

    async def greet(self) -> None:
        """Shake hands, as a client."""
        self.send(json.dumps({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO}).encode())
        assert (await self.line())["id"] == "hello"
        self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    async def answers(self, sent: Sent, fences: int) -> list[Any]:
        """What it says to a message until it has answered so many pings, and the message if that has to be."""
        self.send(sent.data)
        heard: list[Any] = []
        awaited = sent.request_id if fences == 1 else None
        for _ in range(fences):
            self._fences += 1
            fence = f"fence-{self._fences}"
            self.send(json.dumps({"jsonrpc": "2.0", "id": fence, "method": "ping"}).encode())
            while fence or not (awaited is None or any(each.get("id") == awaited for each in heard)):
                try:
                    said = await self.line()
                except (TimeoutError, AssertionError) as error:
                    msg = f"no answer to {'the ping after' if fence else ''} {sent}"
                    raise AssertionError(msg) from error
                if said.get("id") == fence:
                    fence = ""
                else:
                    heard.append(said)
        return heard

    async def seen(self, sent: Sent) -> Any:
        """What a client sees of the bytes."""
        self.send(base64.b64encode(sent.data))
        try:
            return await self.line()
        except (TimeoutError, AssertionError) as error:
            msg = f"nothing is seen after {sent}"
            raise AssertionError(msg) from error


@asynccontextmanager
async def running(command: Sequence[str], home: Path) -> AsyncIterator[Peer]:
    """A process within the block."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_DATA_HOME": str(home)}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 26,
        env=env,
        cwd=home,
    )
    try:
        yield Peer(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            raise


async def test_clients_hear_what_they_would_hear_directly(tmp_path: Path) -> None:
    show(await asyncio.gather(*(heard(sdk, tmp_path) for sdk in SERVERS)))


async def heard(sdk: str, home: Path) -> Counter[str]:
    """The differences between what an SDK's server answers directly and what it answers through Remit."""
    chance, differences = Random(f"{SEED} client {sdk}"), Counter[str]()
    async with running(SERVERS[sdk], home) as direct, running(wrapped(SERVERS[sdk], "echo"), home) as guarded:
        await asyncio.gather(direct.greet(), guarded.greet())
        for number in range(1, NUMBER // 4 + 1):
            sent = from_client(chance, number)
            theirs, ours = await asyncio.gather(direct.answers(sent, FENCES), guarded.answers(sent, 1))
            if not theirs and sent.plain:  # the SDK does not know this spelling: what would it say to another?
                said = await direct.answers(sent._replace(data=sent.plain), FENCES)
                theirs = [{**each, "id": sent.request_id} for each in said]
            differences[difference(sent, theirs, ours, sdk)] += 1
    return differences


async def test_clients_see_what_a_server_says(tmp_path: Path) -> None:
    show(await asyncio.gather(*(seen(sdk, tmp_path) for sdk in CLIENTS)))


async def seen(sdk: str, home: Path) -> Counter[str]:
    """The differences between what an SDK's client sees directly and what it sees through Remit."""
    chance, differences = Random(f"{SEED} server {sdk}"), Counter[str]()
    async with (
        running((*CLIENTS[sdk], *BYTES), home) as direct,
        running((*CLIENTS[sdk], *wrapped(BYTES, "say")), home) as guarded,
    ):
        assert [await direct.line(), await guarded.line()] == [{}, {}]
        for _ in range(NUMBER // 4):
            sent = from_server(chance)
            theirs, ours = await asyncio.gather(direct.seen(sent), guarded.seen(sent))
            differences[difference(sent, theirs, ours, sdk)] += 1
    return differences


def show(counted: Sequence[Counter[str]]) -> None:
    """Print what was counted, and fail at what is in no row."""
    differences = sum(counted, Counter[str]())
    for name, times in differences.most_common():
        sys.stdout.write(f"{times:6}  {name or 'the same'}\n")
    strange = [name for name in differences if name.startswith("?")]
    assert not strange, "\n".join(strange)
