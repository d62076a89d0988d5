"""What clients, disks and databases do wrong: a coded problem each time, and the server stays up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import apsw
import pytest

from remit import Run, recipe, tool
from remit.clock import SystemClock
from remit.http.access import Access
from remit.http.guard import Token, digest_of
from remit.http.server import HEAD_S
from remit.journal.postgres import server as connecting
from remit.journal.sqlite import connection
from tests.api.conftest import Client, Served, bearer, token
from tests.journal.postgres.server import PostgresServer
from tests.journal.sqlite.disk import Disk, inserted
from tests.jumping import leap
from tests.opened import OpenRemit

pytestmark = pytest.mark.slow

AWAY_S = float(os.environ.get("REMIT_TEST_AWAY_S", "0"))
"""How long a database stays away, at least."""
EVENT = {"type": "message", "thread_id": "t1", "content": "hello"}
HEAD = b"POST /events HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 60\r\n"


@tool("desk.look", level="L0")
def look(what: str) -> str:
    """Look something up."""
    return what.upper()


@recipe("waits")
async def waits(run: Run) -> Any:
    """Wait for a signal."""
    return await run.wait_signal("go")


@asynccontextmanager
async def connected(client: Client) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection of its own, to send whatever one likes."""
    there = urlsplit(client.url)
    reader, writer = await asyncio.open_connection(there.hostname, there.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def is_up(client: Client) -> None:
    """The server takes work, and holds nothing for those who left."""
    assert (await client.post("/events", EVENT)).status == 201
    assert not client.places._taken


@pytest.mark.parametrize(
    ("sent", "limits", "code"),
    [
        (HEAD + b"\r\n" + b'{"type":', {"body_s": 0.05}, "BODY_TIMEOUT"),
        (HEAD, {"head_s": 0.05}, "HEAD_TIMEOUT"),
        (b"G", {"head_s": 0.05}, "HEAD_TIMEOUT"),
    ],
    ids=["body", "headers", "first-byte"],
)
async def test_who_sends_too_slowly_is_cut_off(
    remit_in: OpenRemit, served: Served, sent: bytes, limits: dict[str, float], code: str
) -> None:
    async with remit_in() as remit, served(remit, **limits) as client:
        async with connected(client) as (reader, writer):
            writer.write(sent)
            answer = await reader.readuntil(b"}")
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert f'"error_code":"{code}"'.encode() in answer
        await is_up(client)


async def test_who_says_nothing_is_cut_off_and_a_kept_connection_is_timed_anew(
    remit_in: OpenRemit, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in() as remit, served(remit, head_s=0.05) as client, connected(client) as (reader, _):
        assert await reader.read() == b""
    async with remit_in() as remit, served(remit) as client, connected(client) as (reader, writer):
        writer.write(b"GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert b" 200 " in await reader.readuntil(b"}")
        writer.write(b"GET /health/live HTTP/1.1\r\nhost")
        await client.get("/health/live")  # meanwhile the server has read that
        leap(monkeypatch, HEAD_S)
        assert b"HEAD_TIMEOUT" in await reader.read()


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"\r\n" + b'{"type":',
        HEAD,
        b"GET /v1/jobs/last/events/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"GET /v1/jobs/last?wait=60 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"GET /v1/tickets/free?type=TOOL&wait=60 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    ],
    ids=["body", "headers", "stream", "job", "ticket"],
)
async def test_who_leaves_in_the_middle_takes_nothing_along(remit_in: OpenRemit, served: Served, sent: bytes) -> None:
    async with remit_in(recipes=[waits]) as remit, served(remit) as client:
        await client.post("/v1/jobs?wait=60", {"recipe": "waits"})
        async with connected(client) as (_, writer):
            writer.write(sent)
            await writer.drain()
            if b"wait=60" in sent or b"live" in sent or b"{" in sent:
                while not client.places._taken:
                    await client.get("/health/live")
            writer.transport.abort()
        while client.places._taken:
            await client.get("/health/live")
        await is_up(client)


async def test_an_expired_token_and_one_with_too_little_scope_are_refused(remit_in: OpenRemit, served: Served) -> None:
    late = Token(digest_of("secret-late"), Access("late", frozenset({"admin"})), expires=SystemClock().now())
    async with remit_in() as remit, served(remit, [late, token("ann", "read")]) as client:
        expired = await client.get("/v1/jobs", headers=bearer("late"))
        small = await client.post("/events", EVENT, headers=bearer("ann"))
        wrong = await client.get("/v1/jobs", headers=bearer("nobody"))
    assert (expired.status, expired.json["error_code"]) == (401, "UNAUTHENTICATED")
    assert "expired" in expired.json["detail"]
    assert (small.status, small.json["error_code"]) == (403, "SCOPE_REQUIRED")
    assert (wrong.status, wrong.json["error_code"]) == (401, "UNAUTHENTICATED")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The disk that every journal of this test lies on."""
    with inserted() as disk:
        plain = connection._open
        monkeypatch.setattr(
            connection, "_open", lambda path, flags, busy_ms, _vfs: plain(path, flags, busy_ms, disk.name)
        )
        yield disk
        monkeypatch.undo()


STARTS: list[tuple[str, Any]] = [
    ("/events", EVENT),
    ("/v1/jobs", {"recipe": "waits"}),
    ("/v1/tools/execute", {"tool_name": "desk_look", "args": {"what": "x"}}),
]


async def test_a_full_disk_is_a_problem_until_there_is_room_again(
    remit_in: OpenRemit, served: Served, disk: Disk
) -> None:
    async with remit_in(recipes=[waits], tools=[look]) as remit, served(remit) as client:
        before = (await client.post("/events", EVENT)).json
        disk.failing["write"] = apsw.FullError
        for number, (path, body) in enumerate(STARTS):
            headers = {"idempotency-key": f"key-{number}"}
            refused = await client.post(path, body, headers=headers)
            assert (refused.status, refused.json["error_code"]) == (507, "JOURNAL_FULL"), path
            assert refused.json["remedy"]
        assert (await client.get("/health/live")).status == 200
        disk.failing.clear()
        for number, (path, body) in enumerate(STARTS):
            headers = {"idempotency-key": f"key-{number}"}
            done = await client.post(path, body, headers=headers)
            assert done.status in {200, 201}, path
        found = (await client.get("/v1/tickets")).json["items"]
        assert [one["id"] for one in found][-1] == before["id"]
        assert len(found) == 2
        assert (await remit.service.streams.verify()).problems == ()


@pytest.fixture
def mortal() -> Iterator[PostgresServer]:
    """A server of this test's own."""
    with PostgresServer.running() as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT], ids=["crash", "shutdown"])
async def test_a_postgresql_that_goes_away_is_a_problem_until_it_is_back(
    remit_in: OpenRemit,
    served: Served,
    mortal: PostgresServer,
    how: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connecting, "PATIENCE_S", 0.05)
    key = {"idempotency-key": "k"}
    async with remit_in(work=False, flags={"journal.url": mortal.url}) as remit, served(remit) as client:
        before = (await client.post("/events", EVENT)).json
        await asyncio.to_thread(mortal.stop, how)
        refused, back = [await client.get("/health")], SystemClock().monotonic() + AWAY_S
        while len(refused) < 3 or SystemClock().monotonic() < back:
            refused.append(await client.post("/events", EVENT, headers=key))
        assert {(one.status, one.json["error_code"]) for one in refused} == {(503, "JOURNAL_IO")}
        assert (await client.get("/health/live")).status == 200
        await asyncio.to_thread(mortal.start)
        made = await client.post("/events", EVENT, headers=key)
        again = await client.post("/events", EVENT, headers=key)
        assert (made.status, again.status) == (201, 201)
        assert json.loads(again.body) == json.loads(made.body)
        assert (await client.get("/health")).status == 200
        found = (await client.get("/v1/tickets")).json["items"]
        assert [one["id"] for one in found] == [made.json["id"], before["id"]]
        assert (await remit.service.streams.verify()).problems == ()
