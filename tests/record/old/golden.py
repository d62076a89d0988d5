"""What every face says of the journals of older Remits: `python -m tests.record.old.golden` writes it after a change
that is meant.

A line of `golden/JOURNAL.txt` is a face, what it was asked for, and the JSON that it answered with.
"""

from __future__ import annotations

import asyncio
import io
import os
import sqlite3
import tarfile
from collections.abc import AsyncIterator, MutableMapping
from contextlib import chdir, closing, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

import msgspec

from remit import Remit
from remit.api.part import Api
from remit.api.table import ROUTES
from remit.cli.root import run
from remit.clock import SystemClock
from remit.http.access import OPERATOR, RequestPlaces
from remit.http.router import REQUEST, RouterRequest
from remit.http.trace_context import TraceContext
from remit.settings import load

ARCHIVE: Final = Path(__file__).with_name("journals.tar.xz")
GOLDEN: Final = Path(__file__).with_name("golden")
NAMES: Final = tuple(sorted(path.stem for path in GOLDEN.glob("*.txt")))
"""The journals that are held."""


def unpack(folder: Path) -> None:
    """Write every journal into a folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")


def lines(journal: Path) -> list[str]:
    """What the faces say of a journal at the moment of its last event: what is open then expires later."""
    moment = last_event(journal)
    with TemporaryDirectory() as folder, chdir(folder), patch.object(SystemClock, "now", lambda _: moment):
        told = asyncio.run(_over_http(journal))
        for path in list(told):
            words = _command(path)
            if words:
                told[" ".join(words)] = _at_terminal(journal, words, path, told[path])
    return [f"{asked}: {answer.decode()}" for asked, answer in told.items()]


def last_event(journal: Path) -> int:
    """When the last event of a journal was written."""
    with closing(sqlite3.connect(journal)) as database:
        (moment,) = database.execute("SELECT max(at) FROM events").fetchone()
    return int(moment)


def _command(path: str) -> tuple[str, ...]:
    """The command that shows the same as a path; empty if none does, or only that of a step."""
    match path.split("/")[2:]:
        case ["jobs", job]:
            return ("show", job)
        case ["jobs", job, "trace"]:
            return ("trace", job)
        case ["tickets", ticket, "report"]:
            return ("tickets", "show", ticket, "--report")
        case _:
            return ()


def _at_terminal(journal: Path, words: tuple[str, ...], path: str, answer: bytes) -> bytes:
    """What a command prints with --json, or that it is what a path answers with."""
    printed = io.StringIO()
    env = {"HOME": str(journal.parent), "PATH": os.environ["PATH"], "REMIT_JOURNAL": str(journal)}
    with patch.dict(os.environ, env, clear=True), redirect_stdout(printed):
        run([*words, "--json"])
    value = msgspec.json.encode(msgspec.json.decode(printed.getvalue()))
    return f"as {path}".encode() if value == msgspec.json.encode(msgspec.json.decode(answer)) else value


async def _over_http(journal: Path) -> dict[str, bytes]:
    """The answer of each path, without a server."""
    given = {"journal.url": str(journal)}
    async with Remit(settings=load(cwd=journal.parent, env={}, flags=given), work=False) as remit:
        api = Api(remit.service, ROUTES, RequestPlaces(1))
        return {path: await _get(api, path) async for path in _paths(remit)}


async def _paths(remit: Remit) -> AsyncIterator[str]:
    service = remit.service
    for listed in ("jobs", "sessions", "confirmations"):
        yield f"/v1/{listed}"
    for row in sorted(await service.jobs.rows(limit=100), key=lambda row: row.job):
        yield f"/v1/jobs/{row.job}"
        yield f"/v1/jobs/{row.job}/trace"
        yield f"/v1/jobs/{row.job}/artifacts"
        for step in (await service.jobs.view(row.job)).steps:
            yield f"/v1/jobs/{row.job}/steps/{step.step}"
    for session in await service.sessions.rows():
        yield f"/v1/jobs/{session.session}/trace"
    for ticket in await service.tickets.page():
        yield f"/v1/tickets/{ticket.id}"
        if ticket.type == "TOOL":
            yield f"/v1/tickets/{ticket.id}/report"


async def _get(api: Api, path: str) -> bytes:
    sent: list[MutableMapping[str, Any]] = []
    request = RouterRequest({}, OPERATOR, TraceContext.of(""))
    scope = {"method": "GET", "raw_path": path.encode(), "query_string": b"", REQUEST: request}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await api(scope, receive, send)
    return b"".join(message.get("body", b"") for message in sent)


def write() -> None:
    """Write what is held."""
    GOLDEN.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        unpack(Path(folder))
        for journal in sorted(Path(folder).glob("*.db")):
            text = "\n".join(lines(journal)) + "\n"
            (GOLDEN / f"{journal.stem}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
