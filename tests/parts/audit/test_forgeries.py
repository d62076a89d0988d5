"""No forgery passes: whatever somebody without a key does to a signed journal, or to a package of it.

REMIT_TEST_HISTORIES says how many of each, REMIT_TEST_FIRST_HISTORY which seed is the first.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from remit.canonical import canonical, digest
from remit.errors import JournalError, NotFoundError
from remit.evidence import verify
from remit.evidence.ledger import CallLedger, LedgerEvent
from remit.evidence.rejected import RejectedError
from remit.journal.event import link, root
from tests.opened import OpenRemit
from tests.parts.audit.packages import bought, export, repacked
from tests.parts.audit.test_checkpoints import OWN, sign

FORGERIES = int(os.environ.get("REMIT_TEST_HISTORIES", "10"))
FIRST = int(os.environ.get("REMIT_TEST_FIRST_HISTORY", "0"))
Row = dict[str, Any]
"""An event: stream, kind, at, data."""
Streams = dict[str, list[Row]]


# --- what somebody does to the events; every hash is made anew afterwards


def drop(chance: random.Random, streams: Streams) -> None:
    """Take one away."""
    rows = streams[chance.choice([*streams])]
    del rows[chance.randrange(len(rows))]


def cut(chance: random.Random, streams: Streams) -> None:
    """Take the newest away."""
    rows = streams[chance.choice([*streams])]
    del rows[chance.randrange(len(rows)) :]


def take_away(chance: random.Random, streams: Streams) -> None:
    """Take a stream away."""
    del streams[chance.choice([*streams])]


def swap(chance: random.Random, streams: Streams) -> None:
    """Let two change places."""
    rows = streams[max(streams, key=lambda stream: len(streams[stream]))]
    first, second = chance.sample(range(len(rows)), 2)
    rows[first], rows[second] = rows[second], rows[first]


def repeat(chance: random.Random, streams: Streams) -> None:
    """Let one happen twice."""
    rows = streams[chance.choice([*streams])]
    place = chance.randrange(len(rows))
    rows.insert(chance.randrange(len(rows) + 1), rows[place])


def replace(chance: random.Random, streams: Streams) -> None:
    """Put another one of the record in the place of one, so that the number stays."""
    rows = streams[chance.choice([*streams])]
    rows[chance.randrange(len(rows))] = chance.choice([row for every in streams.values() for row in every])


def change(chance: random.Random, streams: Streams) -> None:
    """Change a text or a number, and the digest of the arguments with it."""
    rows = [row for every in streams.values() for row in every]
    row = chance.choice(rows)
    data = json.loads(row["data"])
    names = [name for name, value in data.items() if isinstance(value, str | int) and not isinstance(value, bool)]
    name = chance.choice(names or ["note"])
    data[name] = data[name] + 1 if isinstance(data.get(name), int) else f"{data.get(name, '')}x"
    if isinstance(data.get("args"), dict):
        data["args"]["cents"] = chance.randrange(10_000)
        data |= {"arguments_hash": digest(data["args"])} if "arguments_hash" in data else {}
    row["data"] = canonical(data)


def change_result(chance: random.Random, streams: Streams) -> None:
    """Let a call, a person or the job itself have said something else."""
    values: dict[str, Any] = {"result": "paid 1 to eve", "decision": "deny", "by": "eve", "outcome": "failure"}
    rows = [row for every in streams.values() for row in every if values.keys() & json.loads(row["data"]).keys()]
    row = chance.choice(rows)
    data = json.loads(row["data"])
    name = chance.choice([name for name in values if name in data])
    row["data"] = canonical(data | {name: "other" if data[name] == values[name] else values[name]})


def change_time(chance: random.Random, streams: Streams) -> None:
    """Let it have happened at another time."""
    rows = streams[chance.choice([*streams])]
    chance.choice(rows)["at"] += chance.choice([-1, 1, 10**9])


def go_on(chance: random.Random, streams: Streams) -> None:
    """Take the newest away, and put others there."""
    stream = chance.choice([*streams])
    rows = streams[stream]
    end = chance.randrange(1, len(rows) + 1)
    streams[stream] = [*rows[:end], *(dict(row) for row in rows[: chance.randrange(1, 4)])]


ACTS = (drop, cut, take_away, swap, repeat, replace, change, change_result, change_time, go_on)


def chained(streams: Streams) -> dict[str, list[bytes]]:
    """The chain values of every stream."""
    hashes: dict[str, list[bytes]] = {}
    for stream, rows in streams.items():
        last, hashes[stream] = root(stream), []
        for seq, row in enumerate(rows, 1):
            last = link(last, seq, row["at"], row["kind"], row["data"])
            hashes[stream].append(last)
    return hashes


# --- in a journal


def read_journal(path: Path, root: str) -> Streams:
    sql = (
        "SELECT heads.stream, events.kind, at, data FROM events JOIN heads ON heads.id = events.stream"
        " WHERE heads.stream = ?1 OR heads.stream LIKE ?1 || '/%' ORDER BY heads.id, events.seq"
    )
    streams: Streams = {}
    with closing(apsw.Connection(str(path))) as db:
        for stream, kind, at, data in db.execute(sql, (root,)):
            streams.setdefault(str(stream), []).append({"kind": kind, "at": at, "data": data})
    return streams


def write_journal(path: Path, root: str, streams: Streams) -> None:
    with closing(apsw.Connection(str(path))) as db, db:
        every = "SELECT id, stream FROM heads WHERE stream = ?1 OR stream LIKE ?1 || '/%'"
        numbers = {str(stream): number for number, stream in db.execute(every, (root,))}
        ((position,),) = db.execute("SELECT max(position) FROM events")
        hashes = chained(streams)
        for stream, number in numbers.items():
            db.execute("DELETE FROM events WHERE stream = ?", (number,))
            rows = streams.get(stream, [])
            if not rows:
                db.execute("DELETE FROM heads WHERE id = ?", (number,))
                continue
            for seq, (row, chain) in enumerate(zip(rows, hashes[stream], strict=True), 1):
                position += 1
                values = position, number, seq, row["kind"], row["at"], row["data"], chain
                db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", values)
            sql = "UPDATE heads SET seq = ?, hash = ? WHERE id = ?"
            db.execute(sql, (len(rows), hashes[stream][-1], number))


@pytest.mark.slow
async def test_no_forged_journal_gives_a_package_that_passes(remit_in: OpenRemit, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    await bought(remit_in)
    job = await bought(remit_in)
    await sign(remit_in, tmp_path)
    await export(remit_in, job, tmp_path / "honest.zip")
    assert verify.check(str(tmp_path / "honest.zip"), keys=[OWN.key]).state == "whole"
    shutil.copy(path, tmp_path / "kept.db")
    honest = read_journal(path, f"job/{job}")
    refused = 0
    for seed in range(FIRST, FIRST + FORGERIES):
        chance, streams = random.Random(seed), {stream: [dict(row) for row in rows] for stream, rows in honest.items()}
        act = ACTS[seed % len(ACTS)]
        act(chance, streams)
        if streams == honest:
            continue
        for ending in ("-wal", "-shm"):
            path.with_name(f"journal.db{ending}").unlink(missing_ok=True)
        shutil.copy(tmp_path / "kept.db", path)
        write_journal(path, f"job/{job}", streams)
        try:
            await export(remit_in, job, tmp_path / "forged.zip")
        except (JournalError, NotFoundError):
            refused += 1
            continue
        verdict = verify.check(str(tmp_path / "forged.zip"), keys=[OWN.key])
        assert verdict.state in ("rejected", "undecidable"), (seed, act.__name__, verdict)
    assert refused


# --- in a package


def read_package(place: Path) -> Streams:
    streams: Streams = {}
    with zipfile.ZipFile(place) as package:
        for row in map(json.loads, package.read("events.ndjson").splitlines()):
            event = {"kind": row["kind"], "at": row["at"], "data": row["data"].encode()}
            streams.setdefault(row["stream"], []).append(event)
    return streams


def write_package(source: Path, target: Path, streams: Streams, signed: Mapping[str, str] | None) -> None:
    """Make every file anew that follows from the events; `signed`: the chain values of leaves that may stay."""
    streams = {stream: rows for stream, rows in streams.items() if rows}
    hashes, lines, calls = chained(streams), list[bytes](), list[bytes]()
    ledger = CallLedger(lambda data: calls.append(data))  # noqa: PLW0108 - its own list
    for stream, rows in streams.items():
        for seq, (row, chain) in enumerate(zip(rows, hashes[stream], strict=True), 1):
            text = row["data"].decode()
            said = {"at": row["at"], "data": text, "hash": chain.hex(), "kind": row["kind"], "seq": seq}
            lines.append(canonical(said | {"stream": stream}) + b"\n")
            if row["kind"] in CallLedger.KINDS:
                ledger.take(LedgerEvent(stream, seq, row["kind"], json.loads(text)))
    ledger.end()
    ends = {stream: (len(rows), hashes[stream][-1].hex()) for stream, rows in streams.items()}

    def ended(data: bytes) -> bytes:
        said = json.loads(data)
        kinds = {row["stream"]: row["kind"] for row in said["streams"]}
        said["streams"] = [
            {"stream": stream, "kind": kinds[stream], "events": seq, "hash": chain}
            for stream, (seq, chain) in ends.items()
        ]
        return canonical(said | {"pending": ledger.pending})

    def fitting(data: bytes) -> bytes:
        logs = json.loads(data)
        for log in logs:
            log["leaves"] = [leaf for leaf in log["leaves"] if _fits(leaf, hashes, signed or {})]
        return canonical(logs)

    changes: dict[str, Callable[[bytes], bytes]] = {
        "events.ndjson": lambda _: b"".join(lines),
        "ledger.ndjson": lambda _: b"".join(calls),
        "proof.json": ended,
    }
    repacked(source, target, changes | ({"checkpoints.json": fitting} if signed is not None else {}))


def _fits(leaf: Row, hashes: dict[str, list[bytes]], signed: Mapping[str, str]) -> bool:
    chain, seq = hashes.get(leaf["stream"], []), int(leaf["seq"])
    return len(chain) >= seq and chain[seq - 1].hex() == signed[leaf["stream"]]


@pytest.mark.slow
async def test_no_forged_package_passes(remit_in: OpenRemit, tmp_path: Path) -> None:
    await bought(remit_in)
    job = await bought(remit_in)
    await sign(remit_in, tmp_path)
    good, bad = tmp_path / "good.zip", tmp_path / "bad.zip"
    await export(remit_in, job, good)
    honest = read_package(good)
    signed = {stream: chain[-1].hex() for stream, chain in chained(honest).items()}
    for seed in range(FIRST, FIRST + FORGERIES):
        chance, streams = random.Random(seed), {stream: [dict(row) for row in rows] for stream, rows in honest.items()}
        act = ACTS[seed % len(ACTS)]
        act(chance, streams)
        if streams == honest:
            continue
        for leaves in (None, signed):
            try:
                write_package(good, bad, streams, leaves)
            except (RejectedError, KeyError):
                continue  # the ledger itself contradicts it
            verdict = verify.check(str(bad), keys=[OWN.key])
            assert verdict.state in ("rejected", "undecidable"), (seed, act.__name__, verdict)
