"""Pull requests on every forge: one for a branch, whatever fails, and what people do to it stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.work.outbox.forges import FORGES
from remit.parts.work.outbox.provider import OutboxProvider, OutboxRows
from remit.parts.work.workflow import OutboxTable
from remit_testing.clock import ManualClock
from tests.journal.storages import SqliteStorage
from tests.parts.work.outbox.forge_server import PROJECTS, ForgeServer
from tests.parts.work.outbox.test_forges import forge_of
from tests.parts.work.outbox.test_local import Written, call, unpushed

FORM: Final = {"branch": "remit/issue-1", "target": "main", "title": "Mend the clock", "body": "Begun."}


@pytest.fixture(params=sorted(FORGES))
async def server(request: pytest.FixtureRequest) -> AsyncIterator[ForgeServer]:
    async with ForgeServer(request.param).running() as running:
        yield running


@pytest.fixture
async def outbox(server: ForgeServer, tmp_path: Path) -> AsyncIterator[OutboxProvider]:
    """The tools, on a forge with one issue."""
    forge = forge_of(server)
    await forge.create_issue("One", "", (), key="one")
    written = Written()
    async with SqliteStorage(tmp_path / "journal.db").open(ManualClock()) as journal:
        yield OutboxProvider(lambda: (OutboxTable(), forge), OutboxRows(journal), written, written.queued, unpushed)


async def pull(outbox: OutboxProvider, server: ForgeServer, **more: Any) -> Any:
    """Open or change the pull request of the branch."""
    return await call(outbox, "pull", issue_ref=f"{PROJECTS[server.dialect]}#1", **{**FORM, **more})


async def test_a_draft_is_opened_changed_and_made_ready(outbox: OutboxProvider, server: ForgeServer) -> None:
    first = await pull(outbox, server)
    assert first == {"url": "https://g/pulls/1", "number": 1, "state": "open", "draft": True}
    assert await pull(outbox, server) == first
    ready = await pull(outbox, server, body="Done.", draft=False)
    assert (ready["draft"], server.pulls.is_draft(1)) == (False, False)
    row = server.pulls.rows[1]
    assert (len(server.pulls.rows), row["branch"], row["target"]) == (1, "remit/issue-1", "main")
    assert (row["title"], row["body"].splitlines()[0]) == ("Mend the clock", "Done.")
    assert not (await pull(outbox, server))["draft"], "what is ready stays so"


@pytest.mark.parametrize("status", [502, 0], ids=["502", "cut"])
async def test_one_that_was_opened_before_an_error_is_found(
    outbox: OutboxProvider, server: ForgeServer, status: int
) -> None:
    server.after.append(status)
    assert (await pull(outbox, server))["number"] == 1
    assert len(server.pulls.rows) == 1


async def test_what_people_write_and_close_stays(outbox: OutboxProvider, server: ForgeServer) -> None:
    await pull(outbox, server)
    row = server.pulls.rows[1]
    row["title"], row["body"] = f"{row['title'].removesuffix('Mend the clock')}Mine", "My words."
    await pull(outbox, server, body="Done.")
    assert (row["title"][-4:], row["body"]) == ("Mine", "My words.")
    row["state"] = "closed"
    assert (await pull(outbox, server))["state"] == "closed"
    assert len(server.pulls.rows) == 1
    row["state"] = "merged"
    assert (await pull(outbox, server))["number"] == 2, "what comes after a merge is another one"


async def test_a_forge_without_drafts_gets_one_that_is_none(tmp_path: Path) -> None:
    async with ForgeServer("github").running() as server:
        server.pulls.drafts = False
        forge = forge_of(server)
        await forge.create_issue("One", "", (), key="one")
        async with SqliteStorage(tmp_path / "journal.db").open(ManualClock()) as journal:
            written = Written()
            table = OutboxTable()
            outbox = OutboxProvider(lambda: (table, forge), OutboxRows(journal), written, written.queued, unpushed)
            assert not (await pull(outbox, server))["draft"]


async def test_a_branch_that_is_not_there_is_refused(
    outbox: OutboxProvider, server: ForgeServer, tmp_path: Path
) -> None:
    server.pulls.remote = tmp_path
    with pytest.raises(ProviderError) as refused:
        await pull(outbox, server)
    assert refused.value.cause is Code.InvalidInput
