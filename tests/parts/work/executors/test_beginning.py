"""A run begins at what those before it left, by whatever way that is still to be had."""

from __future__ import annotations

import pytest

from remit.parts.work.pack import LINKS, ContextPack
from remit.parts.work.references import IssueRef
from remit.parts.work.result import Changes, WorkResult
from remit.parts.work.views import Started
from tests.parts.work.conftest import Project
from tests.parts.work.executors.repository import git

pytestmark = pytest.mark.slow


def links_of(project: Project, started: Started) -> str:
    """Return what the pack of a run links."""
    root = project.folder.with_name("sandbox") / "work"
    pack = ContextPack.of(root, IssueRef.parse(started.issue_ref), started.run_id)
    return (pack.folder / LINKS).read_text()


@pytest.mark.parametrize(
    ("lost", "source"),
    [((), "what {} left"), (("branch",), "the commit of {}"), (("branch", "commit"), "the patch of {}")],
    ids=["branch", "commit", "patch"],
)
async def test_what_the_last_run_left_is_taken_over(project: Project, lost: tuple[str, ...], source: str) -> None:
    issue = await project.work.issue("Mend the clock")
    first = await project.work.start(issue, "mend")
    await project.ended(first)
    if "branch" in lost:
        tree = project.folder.with_name("sandbox") / "work" / "trees" / "local=231" / first.run_id
        git(project.folder, "worktree", "remove", "--force", str(tree))
        git(project.folder, "branch", "--delete", "--force", f"run/local%231/{first.run_id}")
    if "commit" in lost:
        git(project.folder, "reflog", "expire", "--expire=now", "--all")
        git(project.folder, "gc", "--quiet", "--prune=now")
    second = await project.work.start(issue, "mend")
    view = await project.ended(second)
    result = view.results[second.run_id]
    assert (result.status, result.changes.commit) == ("ok", ""), "it had nothing left to do"
    assert f"begins at {source.format(first.run_id)}" in links_of(project, second)


async def test_the_commit_of_a_person_is_taken_over(project: Project) -> None:
    issue = await project.work.issue("Mend the clock")
    manual = await project.work.start(issue, "manual")
    git(project.folder, "checkout", "--quiet", "-b", "mine")
    (project.folder / "clock.txt").write_text("mended\n")
    git(project.folder, "commit", "--quiet", "--all", "--message", "Mine")
    commit = git(project.folder, "rev-parse", "HEAD")
    git(project.folder, "checkout", "--quiet", "main")
    changes = Changes(commit=commit)
    handed = WorkResult(issue_ref=issue, run_id=manual.run_id, status="blocked", summary="Half.", changes=changes)
    await project.work.result(handed)
    second = await project.work.start(issue, "mend")
    await project.ended(second)
    assert f"begins at the commit of {manual.run_id}" in links_of(project, second)


async def test_what_was_merged_is_in_the_target(project: Project) -> None:
    issue = await project.work.issue("Mend the clock")
    first = await project.work.start(issue, "mend")
    await project.ended(first)
    git(project.folder, "merge", "--quiet", f"run/local%231/{first.run_id}")
    (project.folder / "news.txt").write_text("new\n")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "--quiet", "--message", "News")
    second = await project.work.start(issue, "mend")
    await project.ended(second)
    assert "begins at" not in links_of(project, second)
    assert git(project.folder, "rev-parse", f"run/local%231/{second.run_id}") == git(
        project.folder, "rev-parse", "main"
    )
