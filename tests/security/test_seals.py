"""Who can write the journal but has no key cannot forge: every hash is right, and the seal is not."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from remit import Remit
from remit.codes import Code
from remit.errors import ChainBrokenError, JournalError, SettingsError
from remit.journal.commit import COLUMNS, to_head
from remit.journal.copy import seal_all
from remit.journal.event import HeadQuery, StreamHead, link, root
from remit.journal.journal import Journal
from remit.journal.seals import KEY_BYTES, Seals, load, make, write
from tests.opened import OpenRemit, until_waiting
from tests.security.test_chained import PAID, buy, look, pay

Asked = tuple[str, str]


class Thief:
    """Somebody who can do anything to the journal's tables, and knows how events are chained."""

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    async def run(self, sql: str, *values: object) -> None:
        raise NotImplementedError

    async def head(self, kind: str) -> tuple[int, StreamHead]:
        """The newest head of a kind, and its number."""
        row = (await self.rows(f"SELECT id, {', '.join(COLUMNS)} FROM heads WHERE kind = '{kind}' ORDER BY id"))[-1]
        return row[0], to_head(row[1:])

    async def append(self, kind: str, event: str, data: bytes, **columns: str | bytes) -> None:
        """Append an event to the newest stream of a kind, chained as it should be, and move the head."""
        number, head = await self.head(kind)
        chained = link(head.hash, head.seq + 1, head.updated_at, event, data)
        await self.run(
            "INSERT INTO events (stream, seq, kind, at, data, hash) VALUES ($1, $2, $3, $4, $5, $6)",
            *(number, head.seq + 1, event, head.updated_at, data, chained),
        )
        await self.run("UPDATE heads SET seq = $1, hash = $2 WHERE id = $3", head.seq + 1, chained, number)
        for name, value in columns.items():
            await self.run(f"UPDATE heads SET {name} = $1 WHERE id = $2", value, number)

    async def rewrite(self, kind: str, old: bytes, new: bytes) -> None:
        """Change the first event of the newest stream of a kind, and chain it and all that follows anew."""
        number, head = await self.head(kind)
        events = await self.rows(f"SELECT seq, kind, at, data FROM events WHERE stream = {number} ORDER BY seq")
        chained = root(head.stream)
        for seq, name, at, data in events:
            changed = data.replace(old, new) if seq == 1 else data
            assert seq > 1 or changed != data
            chained = link(chained, seq, at, name, changed)
            await self.run(
                "UPDATE events SET data = $1, hash = $2 WHERE stream = $3 AND seq = $4", changed, chained, number, seq
            )
        await self.run("UPDATE heads SET hash = $1 WHERE id = $2", chained, number)


class FileThief(Thief):
    """In an SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(apsw.Connection(str(self.path))) as db:
            return list(db.execute(sql))

    async def run(self, sql: str, *values: object) -> None:
        with closing(apsw.Connection(str(self.path))) as db:
            db.set_busy_timeout(10_000)
            db.execute(sql.replace("$", "?"), values)


class ServerThief(Thief):
    """On a server."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.connection.fetch(sql)]

    async def run(self, sql: str, *values: object) -> None:
        await self.connection.execute(sql, *values)


class Place:
    """A sealed journal, its key, and somebody who has only the journal."""

    def __init__(self, open_remit: Callable[..., Remit], flags: dict[str, str], keys: Path, thief: Thief) -> None:
        self.keys = keys
        self.thief = thief
        self.flags = flags
        self._open = open_remit

    def open(self, **given: Any) -> Remit:
        return self._open(tools=[pay], recipes=[buy, look], flags=self.flags, **given)

    async def asked(self) -> Asked:
        """A job that waits for an approval, and the question."""
        async with self.open() as remit:
            job = await remit.start(buy())
            await until_waiting(remit, job.id)
            (question,) = await remit.service.confirmations.pending(job.id)
        return job.id, question.confirmation

    async def codes(self) -> set[str]:
        """What `remit verify` finds."""
        async with self.open(work=False) as remit:
            report = await remit.service.streams.verify()
        assert len(report.codes) == len(report.problems)
        return set(report.codes)

    async def goes_on(self, job: str) -> str:
        """The state of a job after a worker was asked to go on with it, beside another one that completes."""
        async with self.open() as remit:
            with suppress(ChainBrokenError):
                await remit.service.jobs.resume(job)
            assert await remit.run(look()) == "looked", "no other job is the worse for it"
            return (await remit.service.jobs.row(job)).state


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
async def place(request: pytest.FixtureRequest, remit_in: OpenRemit, tmp_path: Path) -> AsyncIterator[Place]:
    keys = tmp_path / "elsewhere" / "journal.keys"
    make(keys)
    flags = {"journal.key_file": str(keys)}
    PAID.clear()
    if request.param == "sqlite":
        yield Place(remit_in, flags, keys, FileThief(tmp_path / "journal.db"))
        return
    url = request.getfixturevalue("storage").url
    connection = await asyncpg.connect(url.replace("&schema=", "&search_path="))
    yield Place(remit_in, {**flags, "journal.url": url}, keys, ServerThief(connection))
    await connection.close()


def approval(question: str) -> bytes:
    return f'{{"confirmation":"{question}","decision":"approve","by":"mallory"}}'.encode()


async def test_what_remit_writes_is_sealed(place: Place) -> None:
    _, question = await place.asked()
    async with place.open() as remit:
        await remit.service.confirmations.decide(question, "approve")
    assert await place.codes() == set()
    async with place.open(work=False) as remit:
        report = await remit.service.streams.verify()
    assert report.sealed == report.streams > 1


async def test_an_approval_that_chains_but_is_not_sealed_pays_nobody(place: Place) -> None:
    job, question = await place.asked()
    await place.thief.append("confirmation", "confirmation_decided", approval(question), state="approved")
    assert await place.codes() == {Code.HEAD_FORGED.name}
    assert await place.goes_on(job) != "completed"
    assert PAID == []


async def test_taking_the_seal_away_does_not_help(place: Place) -> None:
    job, question = await place.asked()
    await place.thief.append("confirmation", "confirmation_decided", approval(question), state="approved", seal=b"")
    assert await place.codes() == {Code.HEAD_UNSEALED.name}
    assert await place.goes_on(job) != "completed"
    assert PAID == []


async def test_a_seal_under_a_key_of_one_s_own_does_not_help(place: Place) -> None:
    job, question = await place.asked()
    await place.thief.append("confirmation", "confirmation_decided", approval(question), state="approved")
    number, head = await place.thief.head("confirmation")
    await place.thief.run("UPDATE heads SET seal = $1 WHERE id = $2", Seals([os.urandom(32)]).seal(head), number)
    assert await place.codes() == {Code.HEAD_UNSEALED.name}
    assert await place.goes_on(job) != "completed"
    assert PAID == []


async def test_the_seal_of_another_stream_does_not_fit(place: Place) -> None:
    await place.asked()
    job, question = await place.asked()
    rows = await place.thief.rows("SELECT seal FROM heads WHERE kind = 'confirmation' ORDER BY id")
    await place.thief.append(
        "confirmation", "confirmation_decided", approval(question), state="approved", seal=rows[0][0]
    )
    assert Code.HEAD_FORGED.name in await place.codes()
    assert await place.goes_on(job) != "completed"


async def test_a_job_whose_input_was_rewritten_does_not_go_on(place: Place) -> None:
    job, question = await place.asked()
    async with place.open(work=False) as remit:
        await remit.service.confirmations.decide(question, "approve")
    await place.thief.rewrite("job", b'"ann"', b'"eve"')
    assert await place.codes() == {Code.HEAD_FORGED.name}
    assert await place.goes_on(job) != "completed"
    assert PAID == []
    assert await place.codes() == {Code.HEAD_FORGED.name}, "a worker that let go of it did not seal it"


@pytest.mark.parametrize("change", ["title = 'harmless'", "labels = '{}'", "kind = 'chore'", "closed = NOT closed"])
async def test_what_a_list_shows_is_sealed_too(place: Place, change: str) -> None:
    await place.asked()
    number, _ = await place.thief.head("job")
    change = change.replace("NOT closed", "1 - closed") if isinstance(place.thief, FileThief) else change
    await place.thief.run(f"UPDATE heads SET {change} WHERE id = {number}")
    assert await place.codes() & {Code.HEAD_FORGED.name, Code.CHAIN_BROKEN.name}


async def test_a_remembered_approval_without_a_seal_holds_nothing(place: Place) -> None:
    _, question = await place.asked()
    async with place.open(work=False) as remit:
        remembered = remit.runtime.services.remembered
        await remit.service.tools.views()
        await remit.service.confirmations.decide(question, "approve")
        await remit.service.approvals.remember(question, "everything", seconds=3_600, exact=False)
        assert len(await remembered.active()) == 1
        await place.thief.rewrite("approval", b'"desk.pay"', b'"desk.*"')
        assert await remembered.active() == []


async def test_leases_need_no_seal(place: Place) -> None:
    """Whoever claims a job changes its state without writing to it."""
    job, question = await place.asked()
    async with place.open(work=False) as remit:
        await remit.service.confirmations.decide(question, "approve")
    number, _ = await place.thief.head("job")
    await place.thief.run(f"UPDATE heads SET state = 'running' WHERE id = {number}")
    assert await place.codes() == set()
    async with place.open() as remit:
        assert await remit.job(job) == "paid ann"
    assert await place.codes() == set()


async def test_a_journal_of_before_is_sealed_and_believed_from_then_on(place: Place) -> None:
    job, question = await place.asked()
    await place.thief.run("UPDATE heads SET seal = $1", b"")  # as an older Remit leaves it
    assert await place.codes() == {Code.HEAD_UNSEALED.name}
    async with place.open(work=False) as remit:
        sealed = await seal_all(remit.runtime.journal)
    assert sealed.sealed == sealed.streams == len(sealed.unsealed) > 1
    assert await place.codes() == set()
    async with place.open() as remit:
        await remit.service.confirmations.decide(question, "approve")
        assert await remit.job(job) == "paid ann"


async def test_sealing_does_not_bless_what_was_forged(place: Place) -> None:
    _, question = await place.asked()
    await place.thief.append("confirmation", "confirmation_decided", approval(question), state="approved")
    async with place.open(work=False) as remit:
        sealed = await seal_all(remit.runtime.journal)
    assert any(problem.startswith(Code.HEAD_FORGED.name) for problem in sealed.problems)
    assert await place.codes() == {Code.HEAD_FORGED.name}


async def test_a_key_is_replaced_and_the_old_one_counts_for_nothing(place: Place) -> None:
    await place.asked()
    old = place.keys.read_bytes()
    stolen = load(place.keys)
    assert stolen is not None
    new = os.urandom(KEY_BYTES)
    write(place.keys, [new, bytes.fromhex(old.decode())])
    assert await place.codes() == set(), "what is sealed under the key before still holds"
    async with place.open(work=False) as remit:
        assert (await seal_all(remit.runtime.journal)).unsealed == ()
    write(place.keys, [new])
    assert await place.codes() == set()
    number, head = await place.thief.head("job")
    await place.thief.run("UPDATE heads SET seal = $1 WHERE id = $2", stolen.seal(head), number)
    assert await place.codes() == {Code.HEAD_UNSEALED.name}


async def test_what_an_older_remit_that_still_runs_writes_is_not_sealed(place: Place) -> None:
    """On a server it goes on with the functions that it knows: no seal is left that does not fit."""
    if not isinstance(place.thief, ServerThief):
        pytest.skip("older versions refuse a file that a newer one has opened")
    await place.asked()
    for name in ("fold", "each"):
        _, head = await place.thief.head("job")
        chained = link(head.hash, head.seq + 1, 1, "note", b"{}")
        event = ([head.seq + 1], ["note"], [1], [b"{}"], [chained])
        streams, seqs, epochs, hashes = [head.stream], [head.seq], [head.epoch], [head.hash]
        given: tuple[object, ...]
        if name == "fold":
            given = (streams, seqs, epochs, hashes, [head.seq + 1], [chained], [1], [1], *event)
        else:
            given = (
                *(streams, [1], [1], streams, ["job"], seqs, epochs, hashes, [None], [head.seq + 1], [chained]),
                *([1], ["{}"], [1], *event, [0], [], [0], [], [], []),
            )
        marks = ", ".join(f"${place}" for place in range(1, len(given) + 1))
        assert await place.thief.connection.fetchval(f"SELECT {name}({marks})", *given) == []
        _, after = await place.thief.head("job")
        assert (after.seq, after.hash, after.seal) == (head.seq + 1, chained, b"")


async def test_without_the_key_it_is_looked_at_and_neither_checked_nor_written_to(
    place: Place, remit_in: OpenRemit
) -> None:
    job, question = await place.asked()
    flags = {name: value for name, value in place.flags.items() if name != "journal.key_file"}
    async with remit_in(tools=[pay], recipes=[buy, look], flags=flags, work=False) as remit:
        report = await remit.service.streams.verify()
        assert (report.ok, report.codes, report.damaged, report.keyless) == (False, (), 0, report.streams)
        assert len(await remit.service.confirmations.pending()) == 1
        for write in (remit.service.confirmations.decide(question, "approve"), remit.start(buy())):
            with pytest.raises(JournalError) as error:
                await write
            assert (error.value.code, report.key in error.value.message) == (Code.KEY_MISSING, True)
    with pytest.raises(JournalError) as error:
        async with remit_in(tools=[pay], recipes=[buy, look], flags=flags):
            pass
    assert error.value.code is Code.KEY_MISSING
    assert await place.codes() == set()
    async with place.open() as remit:
        await remit.service.confirmations.decide(question, "approve")
        assert await remit.job(job) == "paid ann"


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o606])
async def test_a_key_that_others_can_read_is_refused(place: Place, mode: int) -> None:
    place.keys.chmod(mode)
    with pytest.raises(SettingsError, match="others may read"):
        async with place.open():
            pass


async def test_a_key_file_that_is_gone_is_missed(place: Place) -> None:
    """Otherwise whoever deletes it, or names another, has the journal believed without seals."""
    place.keys.unlink()
    with pytest.raises(SettingsError, match="does not exist"):
        async with place.open():
            pass


def test_a_seal_is_an_hmac_of_what_the_head_says(tmp_path: Path) -> None:
    """Anybody with the key can check it with other tools."""
    key = bytes(range(32))
    head = StreamHead(
        stream="job/a", kind="job", state="waiting", seq=3, epoch=1, hash=b"\7" * 32, lease_owner=None,
        lease_until=None, due_at=None, priority=0, wakes=0, closed=False, route="", subject="", title="ü",
        labels={"b": "2", "a": "1"},         created_at=0, updated_at=0,
    )  # fmt: skip
    fields = json.dumps(
        ["job", "open", False, "", "ü", {"a": "1", "b": "2"}], separators=(",", ":"), ensure_ascii=False
    ).encode()
    text = b"remit-seal-1\0" + len(fields).to_bytes(4, "big") + fields + head.hash
    expected = hashlib.sha256(b"remit-seal-key\0" + key).digest()[:8] + hmac.digest(key, text, "sha256")
    assert Seals([key]).seal(head) == expected


async def test_the_head_of_a_stranger_is_not_gone_on_from(place: Place) -> None:
    job, _ = await place.asked()
    await place.thief.run("UPDATE heads SET title = $1 WHERE kind = 'job'", "harmless")
    async with place.open(work=False) as remit:
        journal: Journal = remit.runtime.journal
        (head,) = await journal.heads(HeadQuery(kind="job"))
        writer = journal.writer(head.stream, head.kind, head)
        with pytest.raises(ChainBrokenError) as raised:
            writer.follows(await journal.read(head.stream))
    assert raised.value.code is Code.HEAD_FORGED
    assert head.stream == f"job/{job}"
