"""Somebody has the journal's file: what is found, and what hurts nobody (reviews s03)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from remit import Run, recipe
from remit.cli.output import clean
from remit.codes import Code
from remit.errors import AppendConflictError, ChainBrokenError, RemitError
from remit.journal.event import link, root
from remit.journal.journal import Journal
from remit.journal.kinds import decode
from remit.journal.leases import Owner
from remit.journal.seals import make
from remit.journal.sqlite.store import SqliteStore
from remit_testing.clock import START, ManualClock
from remit_testing.journal.storage import LEASE, head_of, holder, job, note, terms
from tests.cli.conftest import Project, project
from tests.opened import OpenRemit
from tests.security.test_chained import PAID, asked, forge, goes_on, look

__all__ = ["project"]
EVIL = "\x1b[2J\x1b]0;x\x07\x9b\u202e\x08"


@pytest.fixture(autouse=True)
def nobody_paid() -> None:
    """Nobody is paid yet, whatever another module did."""
    PAID.clear()


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(apsw.Connection(str(folder / "journal.db"))) as db:
        return list(db.execute(sql))


async def verified(remit_in: OpenRemit, **flags: Any) -> tuple[str, ...]:
    async with remit_in(work=False, flags=flags) as remit:
        return (await remit.service.streams.verify()).problems


async def looked(remit_in: OpenRemit, **flags: Any) -> str:
    """A job that did something and ended."""
    async with remit_in(recipes=[walk], flags=flags) as remit:
        started = await remit.start(walk())
        await started
    return started.id


@recipe("walk")
async def walk(run: Run) -> int:
    """Look at the clock, three times."""
    return sum([await run.now() for _ in range(3)]) and 3


# --- events and heads

ONE = "stream = (SELECT id FROM heads WHERE kind = 'job')"
DAMAGE = {
    "J01": f'UPDATE events SET data = CAST(\'{{"result":"other"}}\' AS BLOB) WHERE seq = 3 AND {ONE}',
    "J02": f"UPDATE events SET at = at + 1 WHERE seq = 2 AND {ONE}",
    "J03": f"DELETE FROM events WHERE seq = 2 AND {ONE}",
    "J04": f"UPDATE events SET seq = CASE seq WHEN 2 THEN -3 ELSE -2 END WHERE seq IN (2, 3) AND {ONE}",
    "J05": f"DELETE FROM events WHERE seq = (SELECT max(seq) FROM events WHERE {ONE}) AND {ONE}",
}


@recipe("large")
async def large(run: Run) -> str:
    """Return a long text."""
    await run.now()
    return "x" * 20_000


@pytest.mark.parametrize("name", DAMAGE)
async def test_an_event_that_is_changed_moved_or_gone_is_found(remit_in: OpenRemit, tmp_path: Path, name: str) -> None:
    started = await looked(remit_in)
    assert await verified(remit_in) == ()
    forge(tmp_path, DAMAGE[name], "UPDATE events SET seq = -seq WHERE seq < 0")
    assert any(started in problem for problem in await verified(remit_in))


@pytest.mark.parametrize("sealed", [False, True])
async def test_a_tail_that_is_cut_off_with_its_head_is_found_with_a_key(
    remit_in: OpenRemit, tmp_path: Path, sealed: bool
) -> None:  # J06
    keys = tmp_path / "elsewhere/journal.keys"
    make(keys)
    flags = {"journal.key_file": str(keys)} if sealed else {}
    await looked(remit_in, **flags)
    forge(
        tmp_path,
        f"DELETE FROM events WHERE seq > 1 AND {ONE}",
        f"UPDATE heads SET seq = 1, state = 'pending', closed = 0, hash = (SELECT hash FROM events WHERE {ONE})"
        " WHERE kind = 'job'",
    )
    assert bool(await verified(remit_in, **flags)) is sealed


async def test_a_history_that_is_chained_anew_is_found_with_a_key(remit_in: OpenRemit, tmp_path: Path) -> None:  # J07
    keys = tmp_path / "elsewhere/journal.keys"
    make(keys)
    await looked(remit_in, **{"journal.key_file": str(keys)})
    rechain(tmp_path, "job", lambda data: data.replace(b'"walk"', b'"WALK"'))
    assert await verified(remit_in, **{"journal.key_file": str(keys)})


def rechain(folder: Path, kind: str, change: Any) -> None:
    """Change the events of all streams of a kind and chain them as they should be."""
    with closing(apsw.Connection(str(folder / "journal.db"))) as db:
        for number, stream in list(db.execute("SELECT id, stream FROM heads WHERE kind = ? OR ? = ''", (kind, kind))):
            chained = root(stream)
            events = list(db.execute("SELECT seq, kind, at, data FROM events WHERE stream = ? ORDER BY seq", (number,)))
            for seq, name, at, data in events:
                changed = change(data) if kind else change(name, data)
                chained = link(chained, seq, at, name, changed)
                db.execute(
                    "UPDATE events SET data = ?, hash = ? WHERE stream = ? AND seq = ?", (changed, chained, number, seq)
                )
            db.execute("UPDATE heads SET hash = ? WHERE id = ?", (chained, number))


async def test_what_was_put_back_or_taken_out_whole_needs_a_copy_elsewhere(
    remit_in: OpenRemit, tmp_path: Path
) -> None:  # J08, J15: the limit that docs/security.md names
    await looked(remit_in)
    shutil.copy(tmp_path / "journal.db", tmp_path / "yesterday.db")
    second = await looked(remit_in)
    await looked(remit_in)
    assert len(rows(tmp_path, "SELECT 1 FROM heads WHERE kind = 'job'")) == 3
    number = f"(SELECT id FROM heads WHERE stream = 'job/{second}')"
    forge(tmp_path, f"DELETE FROM events WHERE stream = {number}", f"DELETE FROM heads WHERE id = {number}")
    assert any("removed" in problem for problem in await verified(remit_in)), "something came after it"
    shutil.copy(tmp_path / "yesterday.db", tmp_path / "journal.db")
    assert await verified(remit_in) == ()


@pytest.mark.parametrize(
    ("column", "found"), [("labels = '{}'", True), ("labels = '[1]'", True), ("title = 'x'", False)]
)
async def test_labels_that_events_speak_of_are_compared(
    remit_in: OpenRemit, tmp_path: Path, column: str, found: bool
) -> None:  # J12, D07
    started = await looked(remit_in)
    forge(tmp_path, f"UPDATE heads SET {column} WHERE kind = 'job'")
    assert bool(await verified(remit_in)) is found
    async with remit_in(recipes=[look]) as remit:
        assert [row.job for row in await remit.jobs()] == [started]
        assert await remit.run(look()) == "looked"


async def test_streams_that_trade_their_events_are_found(remit_in: OpenRemit, tmp_path: Path) -> None:  # J14
    jobs = [await looked(remit_in) for _ in range(2)]
    numbers = [number for (number,) in rows(tmp_path, "SELECT id FROM heads WHERE kind = 'job' ORDER BY id")]
    one, two = numbers
    forge(
        tmp_path,
        f"UPDATE events SET stream = CASE stream WHEN {one} THEN -{two} ELSE -{one} END WHERE stream IN ({one}, {two})",
        "UPDATE events SET stream = -stream WHERE stream < 0",
        f"UPDATE heads SET hash = (SELECT hash FROM events WHERE stream = heads.id AND seq = heads.seq)"
        f" WHERE id IN ({one}, {two})",
    )
    problems = await verified(remit_in)
    assert all(any(job in problem for problem in problems) for job in jobs)


async def test_a_blob_that_nothing_refers_to_any_more_as_it_is_is_found(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(recipes=[large]) as remit:  # J17
        text = await remit.run(large())
        assert len(text) == 20_000
    assert await verified(remit_in) == ()
    assert rows(tmp_path, "SELECT count(*) FROM blobs") != [(0,)]
    forge(tmp_path, "UPDATE blobs SET data = CAST('\"other\"' AS BLOB)")
    assert await verified(remit_in)


async def test_a_row_that_a_trigger_takes_away_is_missed(remit_in: OpenRemit, tmp_path: Path) -> None:  # D02
    started, _ = await asked(remit_in)
    forge(tmp_path, "DELETE FROM events WHERE kind = 'tool_invocation_started' OR seq = 2")
    assert any(started in problem for problem in await verified(remit_in))
    with pytest.raises(ChainBrokenError):
        await goes_on(remit_in, started)
    assert PAID == []


# --- leases


@pytest.fixture
async def journals(tmp_path: Path) -> AsyncIterator[tuple[Journal, Journal]]:
    """One journal in two processes, with a job that waits."""
    clock = ManualClock()
    both = tuple(Journal(SqliteStore(str(tmp_path / "journal.db"), clock), clock) for _ in range(2))
    await job(both[0], "job/a")
    yield both[0], both[1]
    for one in both:
        await one.close()


Journals = tuple[Journal, Journal]


async def test_of_two_workers_one_gets_the_job(journals: Journals) -> None:  # L01
    one, two = journals
    claims = await asyncio.gather(one.claim(terms("one")), two.claim(terms("two")))
    assert sorted(map(len, claims)) == [0, 1]


async def test_who_froze_past_the_lease_writes_nothing_more(journals: Journals) -> None:  # L02, L03, L06
    one, two = journals
    old = await holder(one)
    stale = await head_of(one)
    (lease,) = await two.claim(terms("two", START + LEASE))
    for late in (old, one.writer("job/a", "job", stale)):
        with pytest.raises(AppendConflictError) as raised:
            await one.append(late, note(2), synced=True)
        assert raised.value.code is Code.APPEND_CONFLICT
    assert await one.renew([("job/a", old.epoch)], START + 3 * LEASE) == []
    await two.append(two.writer("job/a", "job", lease.head), note(2), synced=True)
    assert await two.verify("job/a") == 2


async def test_who_writes_without_a_lease_silences_its_holder(journals: Journals) -> None:  # L04, L05
    one, two = journals
    writer = await holder(one)
    await two.append(two.writer("job/a", "job", await head_of(two)), note(2), synced=True)
    with pytest.raises(AppendConflictError):
        await one.append(writer, note(2), synced=True)
    assert await two.verify("job/a") == 2


@pytest.mark.parametrize("pid", ["", "0", "-1", "1" * 10, "9" * 20, "9" * 5_000, "\u0661", "1.0", "x"])
def test_an_owner_of_a_forged_name_harms_nobody(pid: str) -> None:  # L07, L08
    this = Owner.this()
    owner = Owner.parse(f"{this.host}/{pid}/{this.started}/w")
    assert owner is None or isinstance(owner.dead(), bool)
    assert Owner.parse("rubbish") is None
    forged = Owner.parse(f"{this.host}/999999999/1/w")
    assert forged is not None
    assert forged.dead(), "it is taken over at once, which who can write the file could do anyway"


# --- a hostile journal in the command line

LOOKS = (("jobs",), ("show", "last"), ("trace", "last"), ("verify",), ("sessions",), ("confirm",), ("doctor",))


def controls(text: str) -> set[str]:
    """The characters of a text that would move the cursor or hide something."""
    return {char for char in text if char != "\n" and clean(char) != char}


@pytest.fixture
def hostile(project: Project) -> Project:
    """A project whose journal somebody wrote into."""
    for words in (("notes", "--path", "n.txt"), ("fails",), ("asks",), ("greet", "--name", "x"), ("report",)):
        project.job(*words)
    (project.folder / "journal.db").symlink_to(project.folder / ".remit/journal.db")
    return project


@pytest.mark.parametrize("pid", ["9" * 20, "9" * 5_000])
def test_a_lease_of_a_forged_process_ends_no_command(hostile: Project, pid: str) -> None:  # L09
    host = Owner.this().host
    forge(
        hostile.folder,
        f"UPDATE heads SET lease_owner = '{host}/{pid}/1/w', lease_until = 9000000000000000, state = 'running',"
        " closed = 0 WHERE kind = 'job'",
    )
    for words in (("jobs",), ("show", "last"), ("trace", "last")):
        done = hostile.here(*words)
        assert "UNHANDLED" not in done.err
        assert "Traceback" not in done.err
    assert hostile.here("run", "report").status == 0, "another job is none the worse for it"


@pytest.mark.parametrize("labels", ["[]", "{", '{"a": 1}', ""])
def test_labels_that_are_none_end_no_command(hostile: Project, labels: str) -> None:  # D07
    indexes = ("heads_name", "heads_retry_of", "heads_continues")  # they take no text but JSON
    forge(hostile.folder, *(f"DROP INDEX {name}" for name in indexes), f"UPDATE heads SET labels = '{labels}'")
    assert hostile.here("jobs").status == 0
    assert hostile.here("verify").status == 7
    for words in LOOKS:
        assert "UNHANDLED" not in hostile.here(*words).err


def test_no_text_of_a_head_reaches_the_terminal_raw(hostile: Project) -> None:  # D05
    evil = json.dumps({"a": EVIL}).replace("'", "")
    forge(
        hostile.folder,
        f"UPDATE heads SET title = title || '{EVIL}', labels = '{evil}', lease_owner = 'h{EVIL}/1/1/w',"
        f" lease_until = 9000000000000000",
    )
    for words in LOOKS:
        done = hostile.here(*words)
        assert controls(done.out + done.err) == set(), words
        assert "Traceback" not in done.err
    forge(hostile.folder, f"UPDATE heads SET state = 'x{EVIL}' WHERE kind = 'job'")
    for words in LOOKS:
        assert controls("".join(hostile.here(*words)[1:])) == set(), words


def poisoned(kind: str, data: bytes) -> bytes:
    """An event with escape sequences in every text that its kind takes them in."""
    event = json.loads(data)

    def walk(value: Any) -> Iterator[tuple[Any, Any]]:
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(one, str):
                yield value, key
            elif isinstance(one, dict | list):
                yield from walk(one)

    for holder_, key in list(walk(event)):
        before = holder_[key]
        holder_[key] = before + EVIL
        try:
            decode(kind, json.dumps(event).encode())
        except RemitError:
            holder_[key] = before
    return json.dumps(event).encode()


def test_no_text_of_an_event_reaches_the_terminal_raw(hostile: Project) -> None:  # D06
    rechain(hostile.folder, "", poisoned)
    assert "u001b[2J" in str(rows(hostile.folder, "SELECT CAST(data AS TEXT) FROM events"))
    jobs = [job for (job,) in rows(hostile.folder, "SELECT substr(stream, 5) FROM heads WHERE kind = 'job'")]
    each = [(word, job) for word in ("show", "trace", "replay") for job in jobs]
    for words in (*LOOKS, *each, ("show", jobs[0], "1"), ("usage",)):
        done = hostile.here(*words)
        assert controls(done.out + done.err) == set(), words
        assert "Traceback" not in done.err
        done = hostile.here("--color", "always", *words)
        assert controls(re.sub(r"\x1b\[[0-6;]+m", "", done.out + done.err)) == set(), words


# --- where it lies, and who can read it


def test_a_text_is_not_overwritten_by_a_journal(project: Project) -> None:  # M03
    (project.folder / "notes.txt").write_text("precious", encoding="utf-8")
    (project.folder / ".remit").mkdir()
    (project.folder / ".remit/journal.db").symlink_to(project.folder / "notes.txt")
    assert project.here("run", "report").status != 0
    assert (project.folder / "notes.txt").read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("there", [False, True])
def test_whatever_the_umask_others_read_nothing(project: Project, there: bool) -> None:  # M05, M06
    if there:
        (project.folder / ".remit").mkdir(mode=0o755)
    before = os.umask(0)
    try:
        project.job("research_report", "--query", "x", "--folder", ".")
    finally:
        os.umask(before)
    made = [path for path in (project.folder / ".remit").rglob("*") if path.is_file()]
    assert [path.name for path in made if path.suffix == ".db"]
    assert [path for path in made if path.stat().st_mode & 0o077] == []
    assert there or not (project.folder / ".remit").stat().st_mode & 0o077


def test_doctor_names_a_journal_that_others_can_write(project: Project) -> None:  # M07
    project.job("report")
    for mode, verdict in ((0o666, "warn"), (0o620, "warn"), (0o644, "ok"), (0o600, "ok")):
        (project.folder / ".remit/journal.db").chmod(mode)
        (check,) = [one for one in project.here("doctor", "--json").json if one["name"] == "mode"]
        assert check["verdict"] == verdict
