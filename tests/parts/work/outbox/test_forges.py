"""Every forge keeps the same promises; those behind HTTP also where the network and their limits get in the way."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.parts.work.comment import marker_of
from remit.parts.work.outbox import client
from remit.parts.work.outbox.forges import FORGES, RemoteForge, open_forge
from remit.parts.work.outbox.local import LocalForge
from remit.parts.work.outbox.port import Forge
from remit.parts.work.outbox.provider import OutboxProvider, OutboxRows
from remit.parts.work.references import IssueRef
from remit.parts.work.workflow import OutboxTable
from remit_testing.clock import ManualClock
from remit_testing.forges import FORGE_CHECKS, Check
from remit_testing.providers import call_context
from tests.journal.storages import SqliteStorage
from tests.parts.work.outbox.forge_server import PROJECTS, TOKEN, ForgeServer, QuickClock
from tests.parts.work.outbox.test_local import Written, call, unpushed

ASKED = {"trigger": "note:1", "body": "Done."}


@pytest.fixture(params=sorted(FORGES))
async def server(request: pytest.FixtureRequest) -> AsyncIterator[ForgeServer]:
    async with ForgeServer(request.param).running() as running:
        yield running


@pytest.fixture
async def github() -> AsyncIterator[ForgeServer]:
    async with ForgeServer("github").running() as running:
        yield running


def forge_of(server: ForgeServer, clock: QuickClock | None = None, token: str = TOKEN) -> RemoteForge:
    """Return what speaks to a server."""
    table = OutboxTable(backend=server.dialect, repo=PROJECTS[server.dialect], url=server.url, token_env="T")  # type: ignore[arg-type]
    return open_forge(table, {"T": token}, clock or QuickClock())


@pytest.fixture
async def outbox(github: ForgeServer, tmp_path: Path) -> AsyncIterator[OutboxProvider]:
    """The tools, on a forge with one issue."""
    forge = forge_of(github)
    await forge.create_issue("One", "", (), key="one")
    written = Written()
    async with SqliteStorage(tmp_path / "journal.db").open(ManualClock()) as journal:
        yield OutboxProvider(lambda: (OutboxTable(), forge), OutboxRows(journal), written, written.queued, unpushed)


@pytest.mark.parametrize("check", FORGE_CHECKS, ids=lambda check: check.__name__)
async def test_a_forge_behind_http_keeps_the_contract(check: Check, server: ForgeServer) -> None:
    await check(forge_of(server), PROJECTS[server.dialect])
    assert all(path.startswith(("/repos/org/repo", "/projects/group", "/user")) for _, path, _ in server.requests)


@pytest.mark.parametrize("check", FORGE_CHECKS, ids=lambda check: check.__name__)
async def test_the_journal_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    async with SqliteStorage(tmp_path / "journal.db").open(ManualClock()) as journal:
        await check(LocalForge(journal, "ann"), "local")


@pytest.mark.skipif("REMIT_TEST_EMULATE" not in os.environ, reason="REMIT_TEST_EMULATE names no server of emulate")
async def test_another_emulation_of_github_agrees() -> None:
    url, project = os.environ["REMIT_TEST_EMULATE"].split()
    table = OutboxTable(backend="github", repo=project, url=url, token_env="T")
    forge: Forge = open_forge(table, {"T": os.environ.get("REMIT_TEST_EMULATE_TOKEN", "token")}, QuickClock())
    for check in FORGE_CHECKS[:1] + FORGE_CHECKS[2:4]:  # the others want an empty project
        await check(forge, project)


async def test_a_list_that_has_not_changed_is_not_sent_again(server: ForgeServer) -> None:
    forge = forge_of(server)
    await forge.create_issue("One", "", (), key="one")
    first = await forge.list_issues()
    assert await forge.list_issues() == first
    assert server.requests[-1][2] == 304


async def test_comments_of_others_and_of_the_forge_itself_are_not_ours(server: ForgeServer) -> None:
    forge, marker = forge_of(server), marker_of("note:1")
    issue = await forge.create_issue("One", "", (), key="one")
    server.add_comment(1, f"I quote {marker}", author="mallory")
    server.add_comment(1, f"changed the title {marker}", system=True)
    assert await forge.find(issue, marker) is None


@pytest.mark.parametrize(
    ("headers", "slept"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1771000033"}, 32.0),
        ({}, 60.0),
    ],
)
@pytest.mark.parametrize("status", [403, 429])
async def test_a_limit_is_waited_out(github: ForgeServer, status: int, headers: dict[str, str], slept: float) -> None:
    clock = QuickClock()
    forge = forge_of(github, clock)
    issue = await forge.create_issue("One", "", (), key="one")
    github.refusals.append(("POST", status, headers))
    await forge.append_event(issue, "x", trigger="t")
    assert [round(seconds) for seconds in clock.slept] == [1, slept], "a second between writes, and the limit"
    assert github.bodies == ["x"]


async def test_a_limit_without_an_end_is_an_error_that_did_nothing(github: ForgeServer) -> None:
    forge = forge_of(github)
    github.refusals.append(("POST", 429, {"retry-after": "86400"}))
    with pytest.raises(ProviderError) as refused:
        await forge.create_issue("One", "", (), key="one")
    assert (refused.value.cause, github.issues) == (Code.http_429, {})


@pytest.mark.parametrize("status", [502, 500, 0], ids=["502", "500", "cut"])
@pytest.mark.parametrize("lag", [0, 3])
async def test_a_comment_that_was_posted_before_an_error_is_found(
    outbox: OutboxProvider, github: ForgeServer, status: int, lag: int
) -> None:
    github.after.append(status)
    github.lag = lag + 1 if lag else 0  # the look before the post counts too
    told = await call(outbox, "comment", issue_ref="org/repo#1", **ASKED)
    assert len(github.bodies) == 1
    assert told == {"reference": str(github.notes[1][0]["id"]), "written": True}


async def test_a_comment_whose_post_failed_is_looked_for_before_it_is_posted_again(
    outbox: OutboxProvider, github: ForgeServer
) -> None:
    github.after.append(502)
    github.lag = 100
    with pytest.raises(ProviderError) as failed:
        await call(outbox, "comment", issue_ref="org/repo#1", **ASKED)
    assert failed.value.cause is Code.BadGateway
    github.lag = 3
    told = await call(outbox, "comment", issue_ref="org/repo#1", **ASKED)
    assert (told["written"], len(github.bodies)) == (False, 1)


@pytest.mark.parametrize("change", ["edited", "deleted"])
async def test_what_people_do_to_a_comment_does_not_bring_it_back(
    outbox: OutboxProvider, github: ForgeServer, change: str
) -> None:
    first = await call(outbox, "comment", issue_ref="org/repo#1", **ASKED)
    if change == "edited":
        github.notes[1][0]["body"] = "no marker"
    else:
        github.notes[1].clear()
    again = await call(outbox, "comment", issue_ref="org/repo#1", **ASKED)
    assert again == {"reference": first["reference"], "written": False}
    assert len(github.bodies) == (change == "edited")
    found = await outbox.reconcile("outbox.comment", {"issue_ref": "org/repo#1", **ASKED}, call_context())
    assert found is not None


async def test_a_redirect_or_a_page_elsewhere_gets_no_token(github: ForgeServer) -> None:
    forge = forge_of(github)
    await forge.create_issue("One", "", (), key="one")
    github.url = "http://127.0.0.2:1"  # where its Link headers lead from now on
    for number in range(60):
        github.add_comment(1, f"c{number}")
    assert len(await forge.comments(IssueRef("org/repo", 1))) == 50


@pytest.mark.parametrize("body", [b"{}", b"[" * 200_000, b"", b"no JSON"], ids=["object", "brackets", "empty", "text"])
async def test_an_answer_of_another_form_is_an_error_and_no_empty_list(github: ForgeServer, body: bytes) -> None:
    github.bodies_to_come.append(body)
    with pytest.raises(ProviderError) as error:
        await forge_of(github).list_issues(labels=(), limit=10)
    assert error.value.cause is Code.BadGateway


async def test_an_answer_that_is_too_long_or_leads_elsewhere_is_an_error_with_what_to_do(github: ForgeServer) -> None:
    github.bodies_to_come.append(b"[" + b" " * 20_000_000)
    github.refusals.append(("GET", 302, {"location": "http://127.0.0.2:1/"}))
    for cause in (Code.InvalidInput, Code.content_too_large):
        with pytest.raises(ProviderError, match=r"\[outbox\]") as error:
            await forge_of(github).list_issues(labels=(), limit=10)
        assert error.value.cause is cause


async def test_a_page_that_names_itself_as_the_next_is_the_last(github: ForgeServer) -> None:
    forge = forge_of(github)
    await forge.create_issue("One", "", (), key="one")
    github.pages_forever = "same"
    assert len(await forge.list_issues(labels=(), limit=10)) == 1


async def test_pages_without_an_end_are_an_error(github: ForgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PAGES", 5)
    github.pages_forever = "new"
    with pytest.raises(ProviderError, match="more than 5 pages") as error:
        await forge_of(github).list_issues(labels=(), limit=10)
    assert (error.value.cause, len(github.requests)) == (Code.content_too_large, 5)


async def test_a_wrong_token_is_named_and_not_shown(github: ForgeServer) -> None:
    with pytest.raises(ProviderError) as refused:
        await forge_of(github, token="wrong-token").list_issues()
    assert refused.value.cause is Code.permission_denied
    assert "wrong-token" not in str(refused.value)


@pytest.mark.parametrize(
    ("table", "environ"),
    [
        ({"backend": "github"}, {"GITHUB_TOKEN": "t"}),
        ({"backend": "forgejo", "repo": "a/b"}, {"FORGEJO_TOKEN": "t"}),
        ({"backend": "gitlab", "repo": "a/b", "url": "http://gitlab.example/api/v4"}, {"GITLAB_TOKEN": "t"}),
        ({"backend": "gitlab", "repo": "a/b"}, {}),
    ],
    ids=["no repo", "no url", "no https", "no token"],
)
def test_an_outbox_that_cannot_be_used_says_why(table: dict[str, Any], environ: dict[str, str]) -> None:
    with pytest.raises(UsageError) as refused:
        open_forge(OutboxTable(**table), environ, QuickClock())
    assert refused.value.code is Code.WORK_INVALID
