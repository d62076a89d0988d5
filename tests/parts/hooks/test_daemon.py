"""The guard answers each request on its socket once, in whatever pieces it comes, and refuses what is none."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.clock import SystemClock
from remit.parts.hooks.daemon import GuardFolder, GuardServer
from remit.settings import load
from tests.parts.hooks.test_guard import opened

MESSAGE = json.dumps({"session_id": "s", "tool_use_id": "c", "tool_name": "Bash", "tool_input": {"command": "ls"}})


def request(tag: str = "claude.before", message: bytes = MESSAGE.encode()) -> bytes:
    return tag.encode() + b"\n" + len(message).to_bytes(8, "little") + message


@asynccontextmanager
async def serving(hold_s: int = 0) -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="d-") as place:
        folder = GuardFolder(load(env={}, cwd=Path(place)), {"XDG_DATA_HOME": place})
        async with opened(mode="gate", hold_s=hold_s) as agent:
            serving = asyncio.create_task(GuardServer(agent.guard, SystemClock(), idle_s=60).serve(folder))
            while not folder.socket.exists():
                await SystemClock().sleep(0)
            try:
                yield folder.socket
            finally:
                serving.cancel()
                await asyncio.wait([serving])


async def asked(socket: Path, *pieces: bytes, ends: bool = False) -> bytes:
    reader, writer = await asyncio.open_unix_connection(socket)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await SystemClock().sleep(0)
    if ends:
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_request_may_come_in_pieces_and_has_one_answer() -> None:
    whole = request()
    async with serving() as socket:
        allowed = await asked(socket, whole)
        assert (allowed[:1], allowed[-1:], b'"allow"' in allowed) == (b"0", b"\n", True)
        again = request(message=MESSAGE.replace('"c"', '"d"').encode())
        assert await asked(socket, *(again[at : at + 1] for at in range(len(again)))) == allowed
        assert await asked(socket, request("claude.after") + b"and more that is not read") == b"0\n"


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (request("someone.before"), b"cannot be read"),
        (request(message=b"{}"), b"names no session"),
        (request(message=b"no json"), b"cannot be read"),
        (b"\xff\xfe.before" + request(""), b"can't decode"),
        (b"claude.before\n" + b"\xff" * 8, b"too long"),
        (b"x" * 2_000, b"tag is too long"),
    ],
)
async def test_what_is_no_request_is_refused(sent: bytes, reason: bytes) -> None:
    async with serving() as socket:
        answer = await asked(socket, sent)
    assert (answer[:1], answer[-1:], answer.count(b"\n")) == (b"2", b"\n", 1)
    assert reason in answer


@pytest.mark.parametrize("sent", [b"", b"claude.before", request()[:-1]])
async def test_a_request_that_ends_before_it_is_whole_has_no_answer(sent: bytes) -> None:
    async with serving() as socket:
        assert await asked(socket, sent, ends=True) == b""
        assert (await asked(socket, request()))[:1] == b"0"


async def test_a_client_that_leaves_ends_the_hold_of_its_call() -> None:
    message = MESSAGE.replace("ls", "git push").encode()
    async with serving(hold_s=500) as socket:
        answer = await asked(socket, request(message=message), ends=True)
    assert b"A person has to approve this call" in answer
