"""kill -9 of servers: between taking a request and answering it, and together with runners at random moments."""

from __future__ import annotations

import asyncio
import collections
import http.client
import json
import multiprocessing
import os
import random
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from remit.journal.kinds import SignalSent, decode
from remit.service.options import Options
from tests.crash.server_worker import MOMENTS, Moment, serve_until_killed, work_until_killed
from tests.crash.test_tickets import create, settle
from tests.crash.ticket_worker import opened
from tests.journal.storages import PostgresStorage
from tests.patience import PATIENCE_S
from tests.ports import free_port

TICKETS = int(os.environ.get("REMIT_TEST_TICKETS", "12"))
KILLS = int(os.environ.get("REMIT_TEST_KILLS", "3"))
LOOK_S = 0.05
"""Between two looks whether a server answers: those that are made without a pause take the processor from it."""
EVENT = {"type": "message", "thread_id": "t1", "content": "pay"}
CHARGE = {"tool_name": "bank_charge", "args": {"number": 7}}
STARTS: dict[str, Any] = {
    "/events": EVENT,
    "/v1/tickets": {"type": "TRIAGE", "event": EVENT},
    "/v1/triage/batch": {"events": [EVENT, EVENT]},
    "/v1/jobs": {"recipe": "ticket_run", "input": {"ticket": "t", "steps": [], "kept": [], "policy": {}}},
    "/v1/tools/execute": CHARGE,
}
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.crash.server_worker", "remit.app", "remit.client"])


def ask(port: int, path: str, body: Any, key: str) -> tuple[int, Any] | None:
    """The answer; None if the server died instead."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        headers = {"content-type": "application/json", "idempotency-key": key}
        connection.request("POST", path, json.dumps(body), headers)
        with connection.getresponse() as response:
            return response.status, json.loads(response.read())
    except (ConnectionError, http.client.HTTPException):
        return None
    finally:
        connection.close()


async def answered(server: ForkServerProcess, port: int, path: str, body: Any, key: str) -> tuple[int, Any]:
    """The answer of a server that may still be starting."""
    while (found := await asyncio.to_thread(ask, port, path, body, key)) is None:
        await asyncio.to_thread(server.join, LOOK_S)
    return found


async def a_retry_finds_the_first(url: str, folder: Path, moment: Moment) -> None:
    for path, body in STARTS.items():
        port = free_port()
        server = PROCESSES.Process(target=serve_until_killed, args=(url, str(folder), port, moment))
        server.start()
        while await asyncio.to_thread(ask, port, path, body, path) is None and server.is_alive():
            await asyncio.to_thread(server.join, LOOK_S)  # it is starting
        await asyncio.to_thread(server.join)
        assert server.exitcode == -9
    port = free_port()
    server = PROCESSES.Process(target=serve_until_killed, args=(url, str(folder), port))
    server.start()
    try:
        for path, body in STARTS.items():
            first, second = [await answered(server, port, path, body, path) for _ in range(2)]
            assert first == second
            assert first[0] == (200 if path == "/v1/tools/execute" else 201)
    finally:
        server.kill()
        server.join()
    async with opened(url, folder) as remit:
        assert len(await remit.service.tickets.page()) == 4
        assert len(await remit.service.jobs.rows()) == 1
        witness = folder / "witness"
        assert witness.read_text().split() == ["7"]
        assert (await remit.service.streams.verify()).problems == ()


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_retry_under_the_same_key_finds_what_a_killed_server_had_begun(tmp_path: Path, moment: Moment) -> None:
    await a_retry_finds_the_first(str(tmp_path / "journal.db"), tmp_path, moment)


async def an_agent_hears_it_once(url: str, folder: Path, moment: Moment) -> None:
    script = [{"call": [{"tool": "bank.charge", "args": {"number": 7}}]}, {"say": "Done."}]
    (folder / "script.json").write_text(json.dumps(script))
    asks = {"id": "asks", "effect": "ask", "tools": ["bank.charge"]}
    async with opened(url, folder) as remit:
        given = {"task": "Charge.", "tools": ["bank.*"], "model": "scripted:script.json"}
        agent = await remit.service.jobs.start_named("agent", given, Options(policy=(asks,)))
    sends = {
        f"/v1/jobs/{agent}/conversation": {"text": "Quickly, please."},
        f"/v1/jobs/{agent}/signal": {"name": "go", "payload": 1},
    }
    for path, body in sends.items():
        port = free_port()
        server = PROCESSES.Process(target=serve_until_killed, args=(url, str(folder), port, moment))
        server.start()
        while await asyncio.to_thread(ask, port, path, body, path) is None and server.is_alive():
            await asyncio.to_thread(server.join, LOOK_S)  # it is starting
        await asyncio.to_thread(server.join, PATIENCE_S)
        died = server.exitcode
        server.kill()
        assert died == -9
    port = free_port()
    server = PROCESSES.Process(target=serve_until_killed, args=(url, str(folder), port))
    server.start()
    try:
        for path, body in sends.items():
            first, second = [await answered(server, port, path, body, path) for _ in range(2)]
            assert (first[1]["job"], second) == (agent, first)
    finally:
        server.kill()
        server.join()
    async with opened(url, folder) as remit:
        inbox = await remit.service.streams.events(f"job/{agent}/inbox")
        assert [event.kind for event in inbox] == ["signal_sent", "signal_sent"]
        await remit.service.jobs.cancel(agent)
        remit.runtime.engine.start()
        await remit.service.jobs.settled([agent])
        said = decode(inbox[0].kind, inbox[0].data)
        assert isinstance(said, SignalSent)
        assert await remit.service.conversations.say(agent, "Quickly, please.", key=said.key) == agent
        assert len(await remit.service.jobs.rows()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
async def test_what_is_said_to_an_agent_is_heard_once_though_its_server_was_killed(
    tmp_path: Path, moment: Moment
) -> None:
    await an_agent_hears_it_once(str(tmp_path / "journal.db"), tmp_path, moment)


@pytest.mark.slow
async def test_it_is_heard_once_on_postgresql_too(tmp_path: Path, storage: PostgresStorage) -> None:
    await an_agent_hears_it_once(storage.url, tmp_path, "done")


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
async def test_the_same_on_postgresql(tmp_path: Path, storage: PostgresStorage, moment: Moment) -> None:
    await a_retry_finds_the_first(storage.url, tmp_path, moment)


class Pair:
    """A server and a runner over HTTP, of which one is killed now and then."""

    def __init__(self, url: str, folder: Path) -> None:
        self.port = free_port()
        self._targets: tuple[tuple[Any, tuple[Any, ...]], ...] = (
            (serve_until_killed, (url, str(folder), self.port)),
            (work_until_killed, (f"http://127.0.0.1:{self.port}",)),
        )
        self._running: list[ForkServerProcess] = [self._start(which) for which in range(2)]

    def _start(self, which: int) -> ForkServerProcess:
        target, args = self._targets[which]
        process = PROCESSES.Process(target=target, args=args)
        process.start()
        return process

    def wait(self, which: int, seconds: float) -> None:
        """Let both work for a while; return at once if that one has ended."""
        self._running[which].join(seconds)

    def kill(self, which: int) -> None:
        """Kill one of the two, and start it again."""
        self.end(which)
        self._running[which] = self._start(which)

    def end(self, which: int) -> None:
        """Kill one of the two."""
        self._running[which].kill()
        self._running[which].join()


async def work_through(url: str, folder: Path) -> None:
    witness = folder / "witness"
    witness.touch()
    chance = random.Random(11)
    async with opened(url, folder) as remit:
        tools = await create(remit, TICKETS)
        pair = Pair(url, folder)
        kills = 0
        try:
            while len(await remit.service.tickets.page(kind="TOOL", states=("done",), limit=10_000)) < TICKETS:
                which = chance.randrange(2)
                await asyncio.to_thread(pair.wait, which, chance.uniform(0.2, 1.2))
                if kills < KILLS:
                    pair.kill(which)
                    kills += 1
                await settle(remit, witness)
        finally:
            pair.end(0)
            pair.end(1)
        effects = collections.Counter(witness.read_text().splitlines())
        assert effects == {f"{ticket} {n * 10 + each}": 1 for n, ticket in enumerate(tools) for each in range(2)}
        await remit.service.tickets.follow_up()
        replies = await remit.service.tickets.page(kind="REPLY", limit=10_000)
        assert sorted(reply.metadata.parent_ticket_id for reply in replies) == sorted(tools)
        assert (await remit.service.streams.verify()).problems == ()
        assert kills > 0


@pytest.mark.slow
async def test_killed_servers_and_runners_do_each_ticket_once(tmp_path: Path) -> None:
    await work_through(str(tmp_path / "journal.db"), tmp_path)


@pytest.mark.slow
async def test_killed_servers_and_runners_do_each_ticket_once_on_postgresql(
    tmp_path: Path, storage: PostgresStorage
) -> None:
    await work_through(storage.url, tmp_path)
