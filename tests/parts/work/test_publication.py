"""Work that is pushed and shown as a pull request while it is under way, and what the next run begins at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from remit import Remit
from remit.parts.work.references import IssueRef
from remit.settings import load
from tests.parts.work.conftest import ALLOWED
from tests.parts.work.executors.repository import git, make_repository
from tests.parts.work.outbox.forge_server import PROJECTS, TOKEN, ForgeServer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

BRANCH: Final = "remit/issue-1"
WORKFLOW: Final = '''
[outbox]
backend = "{backend}"
repo = "{repo}"
url = "{url}"
token_env = "FORGE_TOKEN"
remote = "origin"
push_seconds = {every}

[executors.mend]
program = "sh"
args = ["-c", "echo mended > clock.txt"]
isolation = "none"

[executors.more]
program = "sh"
args = ["-c", "cat *.txt > all.out; echo more > more.txt"]
isolation = "none"

[executors.slow]
program = "sh"
args = ["-c", """echo half > half.txt
until git -C {remote} rev-parse -q --verify refs/heads/remit/issue-1; do sleep 0.1; done
echo mended > clock.txt"""]
isolation = "none"

[executors.hang]
program = "sh"
args = ["-c", "echo half > half.txt; sleep 86400"]
isolation = "none"

[executors.breaks]
program = "sh"
args = ["-c", "echo drop > migrations/1.sql"]
isolation = "none"

[constraints]
target_branch = "main"
forbidden_paths = ["migrations/**"]
'''


class Site:
    """A repository with a remote, whose issues are on a forge."""

    def __init__(self, folder: Path, server: ForgeServer, remit: Remit) -> None:
        self.folder = folder
        self.remote = folder.with_name("remote.git")
        self.server = server
        self.remit = remit
        self.work: Any = remit.service.work

    async def run(self, issue: str, executor: str) -> Any:
        """Have a run done; the issue after it."""
        started = await self.work.start(issue, executor)
        async with asyncio.timeout(PATIENCE_S):
            await self.remit.ended(started.job)
        return await self.work.view(issue)

    def push_by_hand(self, branch: str, name: str) -> str:
        """Push a commit to a branch of the remote, as another person would; the commit."""
        other = self.folder.with_name("other")
        if not other.exists():
            git(self.folder.parent, "clone", "--quiet", str(self.remote), "other")
        git(other, "fetch", "--quiet", "origin")
        git(other, "checkout", "--quiet", "-B", "work", f"origin/{branch}")
        (other / name).write_text("by hand\n")
        git(other, "add", ".")
        git(other, "commit", "--quiet", "--message", "By hand")
        git(other, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
        return git(other, "rev-parse", "HEAD")


@pytest.fixture(params=["github"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[ForgeServer]:
    async with ForgeServer(request.param).running() as running:
        yield running


@pytest.fixture
def every() -> int:
    return 0


@pytest.fixture
async def site(tmp_path: Path, server: ForgeServer, every: int, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    folder = make_repository(tmp_path / "project")
    remote = tmp_path / "remote.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(folder), str(remote))
    git(folder, "remote", "add", "origin", str(remote))
    server.pulls.remote = remote
    given = {"backend": server.dialect, "repo": PROJECTS[server.dialect], "url": server.url, "remote": remote}
    (folder / "workflow.toml").write_text(WORKFLOW.format(every=every, **given))
    monkeypatch.setenv("FORGE_TOKEN", TOKEN)
    monkeypatch.setattr("remit.parts.work.outbox.client._BETWEEN_S", 0.0)
    flags = {
        "app.principal": "alice",
        "journal.url": str(tmp_path / "journal.db"),
        "policy.rules": ALLOWED,
        "sandbox.folder": str(tmp_path / "sandbox"),
    }
    async with Remit(settings=load(env={}, cwd=folder, flags=flags)) as remit:
        yield Site(folder, server, remit)


@pytest.mark.parametrize("server", list(PROJECTS), indirect=True)
async def test_a_result_is_pushed_and_shown_and_ready_once_it_is_proved(site: Site) -> None:
    issue = await site.work.issue("Mend the clock", body="It is broken.")
    view = await site.run(issue, "mend")
    (result,) = view.results.values()
    assert (view.state, result.changes.pr) == ("review", "https://g/pulls/1"), result.summary
    assert git(site.remote, "rev-parse", BRANCH) == result.changes.commit
    row = site.server.pulls.rows[1]
    assert (row["branch"], row["target"], site.server.pulls.is_draft(1)) == (BRANCH, "main", False)
    assert "Summary:" in row["body"]
    assert "PR: https://g/pulls/1" in site.server.bodies[0]


@pytest.mark.parametrize("every", [1])
async def test_what_is_under_way_is_pushed_as_a_draft_and_gives_way_to_the_result(site: Site) -> None:
    issue = await site.work.issue("Mend the clock")
    view = await site.run(issue, "slow")
    (result,) = view.results.values()
    assert (view.state, result.changes.pr) == ("review", "https://g/pulls/1"), result.summary
    assert git(site.remote, "rev-parse", BRANCH) == result.changes.commit
    assert git(site.remote, "log", "--format=%s", f"main..{BRANCH}") == f"Work on {issue}"


@pytest.mark.parametrize("every", [1])
async def test_another_machine_goes_on_from_what_was_pushed(site: Site) -> None:
    issue = await site.work.issue("Mend the clock")
    old = await site.work.start(issue, "hang")
    async with asyncio.timeout(PATIENCE_S):
        await site.server.pulls.opened.wait()
    assert site.server.pulls.is_draft(1)
    await site.work.stop(issue, "other machine")
    folder = IssueRef.parse(issue).file_name
    tree = site.folder.with_name("sandbox") / "work" / "trees" / folder.replace("%", "=") / old.run_id
    git(site.folder, "worktree", "remove", "--force", str(tree))
    git(site.folder, "branch", "--delete", "--force", f"run/{folder}/{old.run_id}")
    view = await site.run(issue, "more")
    commit = view.results[view.runs[0].run_id].changes.commit
    assert git(site.folder, "show", f"{commit}:half.txt") == "half"
    assert git(site.remote, "rev-parse", BRANCH) == commit


async def test_what_people_push_is_where_the_next_run_begins_and_is_never_lost(site: Site) -> None:
    issue = await site.work.issue("Mend the clock")
    await site.run(issue, "mend")
    by_hand = site.push_by_hand(BRANCH, "hand.txt")
    view = await site.run(issue, "more")
    commit = view.results[view.runs[0].run_id].changes.commit
    assert git(site.folder, "show", f"{commit}:hand.txt") == "by hand"
    assert git(site.folder, "rev-parse", f"{commit}^") == by_hand
    assert git(site.remote, "rev-parse", BRANCH) == commit
    assert len(site.server.pulls.rows) == 1


async def test_a_run_begins_at_the_target_as_the_remote_has_it(site: Site) -> None:
    newer = site.push_by_hand("main", "news.txt")
    view = await site.run(await site.work.issue("Mend the clock"), "mend")
    (result,) = view.results.values()
    assert git(site.folder, "rev-parse", f"{result.changes.commit}^") == newer


async def test_a_draft_that_cannot_be_made_ready_is_said_with_its_run(site: Site) -> None:
    site.server.pulls.readies = False
    issue = await site.work.issue("Mend the clock")
    view = await site.run(issue, "mend")
    (run,) = view.runs
    assert (view.state, site.server.pulls.is_draft(1)) == ("review", True)
    assert "Not Found" in view.unready[run.run_id]


async def test_what_may_not_change_is_not_pushed(site: Site) -> None:
    view = await site.run(await site.work.issue("Mend the clock"), "breaks")
    (result,) = view.results.values()
    assert (result.status, result.changes.pr) == ("fail", "")
    assert not git(site.remote, "branch", "--list", BRANCH)


async def test_a_push_that_is_refused_is_said_and_loses_nothing(site: Site) -> None:
    git(site.remote, "config", "receive.denyCurrentBranch", "refuse")
    (site.remote / "hooks" / "pre-receive").write_text("#!/bin/sh\necho closed for today >&2\nexit 1\n")
    (site.remote / "hooks" / "pre-receive").chmod(0o755)
    view = await site.run(await site.work.issue("Mend the clock"), "mend")
    (result,) = view.results.values()
    assert (view.state, result.changes.pr) == ("review", "")
    assert "not shown as a pull request" in result.summary
    assert git(site.folder, "show", f"{result.changes.commit}:clock.txt") == "mended"


async def test_a_remote_that_shows_no_branch_is_said_and_loses_nothing(site: Site) -> None:
    git(site.remote, "symbolic-ref", "HEAD", "refs/heads/absent")
    settings = site.folder / "workflow.toml"
    settings.write_text(settings.read_text().replace('target_branch = "main"\n', ""))
    view = await site.run(await site.work.issue("Mend the clock"), "mend")
    (result,) = view.results.values()
    assert (view.state, result.changes.pr) == ("review", "")
    assert "target_branch" in result.summary
    assert git(site.remote, "branch", "--list", BRANCH)
