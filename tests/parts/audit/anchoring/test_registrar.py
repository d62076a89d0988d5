"""What is registered while a recorder signs is what an export writes later, whatever happened in between."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, tool
from remit.evidence.anchors import MOST
from remit.parts.audit.anchoring.client import AnchorClient
from remit.parts.audit.anchoring.registrar import Registrar
from remit.parts.audit.formats import ael, catalog
from remit.parts.audit.formats.account import ExportAccount, pack
from remit.parts.audit.formats.ael_anchors import FILE, anchored
from remit.parts.audit.formats.keys import OperatorSigner
from remit.parts.audit.package import write_package
from remit.parts.audit.sessions import sessions_of
from tests.opened import OpenRemit
from tests.parts.audit.anchoring.log import LOG, holder, log_in
from tests.parts.audit.formats.errands import recorder_of

ANN = holder(5)
PARENT = "00-{trace}-{span:016x}-01"


@tool("own.think", level="L0")
def think(text: str) -> str:
    """Think."""
    return text


@tool("own.pay", level="L1")
def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


class World:
    """A journal with sessions that callers with a trace call in, a recorder, and a registrar."""

    def __init__(self, remit: Remit, folder: Path, client: AnchorClient, by: OperatorSigner = ANN) -> None:
        self.remit, self.folder, self.client, self.by = remit, folder, client, by
        self.told: list[str] = []
        self.recorder = recorder_of(remit, folder)
        self.spans = 0

    async def call(self, session: str, trace: str, name: str = "own.think", **args: Any) -> str:
        """Call a tool as a caller with this trace, and return what became of it."""
        self.spans += 1
        client = {"traceparent": PARENT.format(trace=trace * 32, span=self.spans)}
        view = await self.remit.service.sessions.call(session, name, args or {"text": "hm"}, client=client)
        return view.status

    async def sign(self) -> None:
        """Sign a checkpoint over what is new."""
        await self.recorder.look(at_once=True)

    async def end(self) -> None:
        """End the recorder's session."""
        await self.recorder.cover()
        await self.recorder.end()

    async def registrar(self) -> Registrar:
        """A process that registers, begun anew."""
        made = Registrar(self.remit.runtime.journal, self.client, self.by, self.told.append)
        await made.begin()
        return made

    async def exported(self, session: str, code: str | None = None) -> tuple[dict[str, Any], str]:
        """The anchors of a session's artifact, and what a check says of them."""
        journal, place = self.remit.runtime.journal, self.folder / "one.ael.zip"
        with (self.folder / "package.zip").open("w+b") as package:
            await write_package(journal, session, package)
            account = ExportAccount(package)
            times = [entry.at for entry in account.entries]
            account.sessions = await sessions_of(journal, account.last, (min(times), max(times)))
            files = anchored(ael.write(account, self.by), self.client.prove, self.client.fingerprint, MOST)
        keys = self.folder / "keys"
        keys.mkdir(exist_ok=True)
        (keys / f"{self.by.name}.pub").write_bytes(base64.b64encode(self.by.public))
        (keys / f"{self.client.fingerprint}.pub").write_bytes(base64.b64encode(self.client.key.public))
        place.write_bytes(pack(files))
        answer = catalog.check(place, keys)
        assert answer is not None
        assert answer.code == code, answer
        return json.loads(files.get(FILE, b'{"entries":[]}')), answer.words


@pytest.fixture
def client(tmp_path: Path) -> Iterator[AnchorClient]:
    with log_in(tmp_path, ANN) as client:
        yield client


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "journal.db")
    return f"{request.getfixturevalue('postgres').url}&schema={request.getfixturevalue('schema')}"


@asynccontextmanager
async def world_of(remit_in: OpenRemit, folder: Path, client: AnchorClient, **flags: str) -> AsyncIterator[World]:
    async with remit_in(tools=[think, pay], flags=flags) as remit:
        world = World(remit, folder, client)
        await world.sign()
        yield world


async def anchored_to_the_end(world: World, session: str) -> int:
    """The number of anchors of a session's artifact, after the last of which no record comes."""
    anchors, words = await world.exported(session)
    assert "0 records after the last" in words
    return len(anchors["entries"])


async def opened(world: World) -> str:
    return await world.remit.service.sessions.open("mcp", principal="ann")


async def test_each_checkpoint_after_a_call_and_the_end_is_anchored(
    remit_in: OpenRemit, tmp_path: Path, client: AnchorClient
) -> None:
    async with world_of(remit_in, tmp_path, client) as world:
        session, registrar = await opened(world), await world.registrar()
        for _ in range(3):
            await world.call(session, "a")
            await world.call(session, "b")
            await world.sign()
            assert await registrar.catch_up()
        anchors, _ = await world.exported(session, "j")  # the session goes on
        assert len(anchors["entries"]) == 6
        await world.sign()  # covers no call
        await world.end()
        assert await registrar.catch_up()
        assert await anchored_to_the_end(world, session) == 8


async def test_a_call_that_waited_for_a_person_belongs_to_its_session(
    remit_in: OpenRemit, tmp_path: Path, client: AnchorClient
) -> None:
    async with world_of(remit_in, tmp_path, client) as world:
        session, registrar = await opened(world), await world.registrar()
        await world.call(session, "a")
        assert await world.call(session, "a", "own.pay", cents=5) == "pending"
        await world.sign()
        (question,) = await world.remit.service.confirmations.pending()
        await world.remit.service.confirmations.decide(question.confirmation, "approve", by="carol")
        assert await world.call(session, "a", "own.pay", cents=5) == "ok"
        await world.end()
        assert await registrar.catch_up()
        assert await anchored_to_the_end(world, session) == 3


async def test_a_trace_goes_on_in_the_next_session_of_the_recorder(
    remit_in: OpenRemit, tmp_path: Path, client: AnchorClient, url: str
) -> None:
    async with world_of(remit_in, tmp_path, client, **{"journal.url": url}) as world:
        session, registrar = await opened(world), await world.registrar()
        for number in range(3):
            if number != 1:  # the one between covers no call
                await world.call(session, "a")
            await world.sign()
            await world.end()
            await world.sign()
        await world.call(session, "a")
        await world.end()
        assert await registrar.catch_up()
        assert await anchored_to_the_end(world, session) == 4


@pytest.mark.parametrize("begun_again", [False, True])
async def test_what_the_log_missed_is_registered_once_it_is_back(
    remit_in: OpenRemit, tmp_path: Path, begun_again: bool
) -> None:
    away = AnchorClient("http://127.0.0.1:9", LOG.key)
    async with world_of(remit_in, tmp_path, away) as world:
        session, registrar = await opened(world), await world.registrar()
        await world.call(session, "a")
        await world.sign()
        assert not await registrar.catch_up()
        assert "takes nothing" in world.told[-1]
        await world.call(session, "a")
        await world.end()
        with log_in(tmp_path, ANN) as world.client:
            if begun_again:
                registrar = await world.registrar()
            else:
                registrar._client = world.client
            assert await registrar.catch_up()
            assert world.told[-1] == ""
            assert await anchored_to_the_end(world, session) == 3


async def test_a_session_that_is_registered_is_not_read_again(
    remit_in: OpenRemit, tmp_path: Path, client: AnchorClient
) -> None:
    async with world_of(remit_in, tmp_path, client) as world:
        session, registrar = await opened(world), await world.registrar()
        await world.call(session, "a")
        await world.end()
        assert await registrar.catch_up()
        again = await world.registrar()
        assert (again._number, again._log) == (2, registrar._log)


async def test_a_call_that_was_changed_later_has_no_anchor(
    remit_in: OpenRemit, tmp_path: Path, client: AnchorClient
) -> None:
    async with world_of(remit_in, tmp_path, client) as world:
        session, registrar = await opened(world), await world.registrar()
        await world.call(session, "a")
        await world.call(session, "b")
        await world.end()
        assert await registrar.catch_up()
        forged = ExportAccount.take

        def take(account: ExportAccount, entry: Any) -> None:
            is_first = entry.kind == "tool_invocation_started" and "a" * 32 in str(entry.payload.client)
            forged(account, entry._replace(at=entry.at + 1_000) if is_first else entry)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ExportAccount, "take", take)
            anchors, _ = await world.exported(session)
        assert {row["run"] for row in anchors["entries"]} == {f"trace/{'b' * 32}"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("REMIT_TEST_HISTORIES", "40")) // 10))
async def test_whatever_the_order_an_export_finds_all_that_was_registered(
    remit_in: OpenRemit, tmp_path: Path, client: AnchorClient, seed: int
) -> None:
    chance = random.Random(seed)
    async with world_of(remit_in, tmp_path, client) as world:
        sessions, registrar = [await opened(world), await opened(world)], await world.registrar()
        called = dict[str, set[str]]()
        for _ in range(30):
            match chance.choice("cccsser"):
                case "c":
                    session, trace = chance.choice(sessions), chance.choice("abc")
                    called.setdefault(session, set()).add(trace)
                    await world.call(session, trace)
                case "s":
                    await world.sign()
                case "e":
                    await world.end()
                    await world.sign()
                case _:
                    registrar = await world.registrar() if chance.random() < 0.3 else registrar
                    assert await registrar.catch_up()
        await world.end()
        assert await registrar.catch_up()
        for session, traces in called.items():
            anchors, words = await world.exported(session)
            assert "0 records after the last" in words
            assert {row["run"] for row in anchors["entries"]} == {f"trace/{trace * 32}" for trace in traces}
