"""Every value that a job keeps beside its events is known: to `verify`, to a copy, and to an erasure."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from remit import EvidenceCandidate, Options, Remit, ToolResult, tool
from remit.codes import Code
from remit.errors import ChainBrokenError
from remit.journal.copy import copy
from remit.journal.erasure import Erased, erase
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.kinds import CommandStarted, MessageKept
from remit.parts.agents.recipes import agent
from remit.settings import Settings, load
from remit_testing.clock import ManualClock
from tests.journal.storages import SqliteStorage


@tool("crm.note", level="L0")
def note(name: str) -> ToolResult:
    """The note about a customer, with a picture."""
    page = EvidenceCandidate(kind="tool_output", source="crm", retrieved_at=1, text=f"about {name}")
    picture = EvidenceCandidate(kind="tool_output", source="crm", retrieved_at=1, data=b"picture of " + name.encode())
    return ToolResult({"note": f"{name} has measles", "more": f"{name} " * 2_000}, (page, picture))


TASK = "What does Jane Doe have? " * 500
SCRIPT: list[dict[str, Any]] = [
    {"call": [{"tool": "crm.note", "args": {"name": "Jane Doe"}}]},
    {"say": "Jane Doe has measles."},
]


def settings(folder: Path) -> Settings:
    (folder / "script.json").write_bytes(msgspec.json.encode(SCRIPT))
    flags = {"models.default": "scripted:script.json", "journal.url": str(folder / "j.db")}
    return load(cwd=folder, file=None, env={}, flags=flags)


async def recorded(folder: Path, **options: Any) -> Path:
    """A journal with an agent's job that asked a long question, called a tool and got evidence."""
    async with Remit(settings=settings(folder), tools=[note]) as remit:
        await (await remit.start(agent(task=TASK, tools=["crm.*"]), Options(**options)))
    return folder / "j.db"


def run(path: Path, sql: str, *values: object) -> list[Any]:
    with closing(apsw.Connection(str(path))) as db:
        return db.execute(sql, values).fetchall()


async def problems(folder: Path) -> tuple[str, ...]:
    async with Remit(settings=settings(folder), tools=[note], work=False) as remit:
        return (await remit.service.streams.verify()).codes


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["", "jane"])
async def test_any_value_that_was_changed_or_deleted_is_found(tmp_path: Path, subject: str) -> None:
    path = await recorded(tmp_path, subject=subject)
    assert await problems(tmp_path) == ()
    values = run(path, "SELECT digest, data, until FROM blobs")
    assert len(values) > 6
    for digest, data, until in values:
        run(path, "UPDATE blobs SET data = ? WHERE digest = ?", data[:-1] + bytes([data[-1] ^ 1]), digest)
        assert await problems(tmp_path) == ("CHAIN_BROKEN",), data[:200]
        run(path, "UPDATE blobs SET data = x'' WHERE digest = ?", digest)
        (code,) = await problems(tmp_path)
        assert code in {"BLOB_MISSING", "CHAIN_BROKEN"}, data[:200]
        run(path, "DELETE FROM blobs WHERE digest = ?", digest)
        kept_for_a_time = until is not None
        assert await problems(tmp_path) == (() if kept_for_a_time else ("BLOB_MISSING",)), data[:200]
        run(path, "INSERT INTO blobs VALUES (?, ?, 0, ?)", digest, data, until)


async def test_a_copy_of_a_journal_whose_messages_are_gone_is_not_called_equal(tmp_path: Path) -> None:
    path = await recorded(tmp_path)
    values = run(path, "SELECT digest, data FROM blobs")
    (digest,) = [digest for digest, data in values if b"blocks" in data and b"What does Jane" in data]
    run(path, "DELETE FROM blobs WHERE digest = ?", digest)
    async with (
        SqliteStorage(path).open(ManualClock()) as source,
        SqliteStorage(tmp_path / "copy.db").open(ManualClock()) as target,
    ):
        with pytest.raises(ChainBrokenError) as raised:
            await copy(source, target)
    assert raised.value.code is Code.BLOB_MISSING


async def test_an_erasure_leaves_nothing_of_what_a_model_was_asked(tmp_path: Path) -> None:
    path = await recorded(tmp_path, subject="jane")
    async with Remit(settings=settings(tmp_path), tools=[note], work=False) as remit:
        journal = remit.runtime.journal
        shared = {row[0] for row in run(path, "SELECT digest FROM blobs WHERE CAST(data AS TEXT) NOT LIKE '%Jane%'")}
        erased = await erase(journal, "jane", by="ann")
        assert (erased.streams, erased.left) == (1, 0)
        report = await remit.service.streams.verify()
        assert (report.ok, report.erased > 0) == (True, True)
    for table in ("events", "blobs"):
        assert all(b"Jane" not in bytes(data) for (data,) in run(path, f"SELECT data FROM {table}")), table
    schemas = {row[0] for row in run(path, "SELECT digest FROM blobs WHERE length(data) > 0")}
    assert schemas
    assert schemas <= shared, "what streams share stays"


async def test_an_erasure_says_what_an_older_remit_left_in_the_events(tmp_path: Path) -> None:
    async with SqliteStorage(tmp_path / "j.db").open(ManualClock()) as journal:
        await _as_before(journal)
        assert await erase(journal, "jane") == Erased(streams=1, values=0, left=2)
        assert await journal.verify("job/a") == 1


async def _as_before(journal: Journal) -> None:
    """What a model was asked stands in the event, and beside it under a digest of its own."""
    body = msgspec.Raw(b'{"text":"Jane Doe has measles"}')
    prompt = msgspec.Raw(b'{"thread":"t"}')
    started = CommandStarted(
        invocation_id="i", step="1", prompt=prompt, added=(MessageKept(digest="sha256:1", body=body),)
    )
    writer = journal.writer("job/a", "job")
    await journal.append(writer, started, synced=True, patch=HeadPatch(state="completed"))
    head = await journal.head("job/a")
    assert head is not None
    await journal._store._in_transaction(  # type: ignore[attr-defined] # a head as it was with a subject
        lambda db: db.execute("UPDATE heads SET subject = 'jane'").fetchall()
    )
