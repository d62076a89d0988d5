"""The promises of every forge (remit.parts.work.outbox.port), as checks that any test suite can run.

    @pytest.mark.parametrize("check", FORGE_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check):
        await check(MyForge(...), "owner/repo")

The project is empty before each check, and has a person called `ann`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.work.comment import MAX_BODY, marker_of
from remit.parts.work.outbox.port import Forge
from remit.parts.work.references import IssueRef

Check = Callable[[Forge, str], Awaitable[None]]
_MANY: Final = 120
"""Comments and issues that no forge shows on one page."""


async def _opened(forge: Forge, title: str = "One", labels: tuple[str, ...] = ()) -> IssueRef:
    return await forge.create_issue(title, f"About {title}", labels, key=title)


async def an_issue_is_opened_once_for_each_key(forge: Forge, project: str) -> None:
    """A second attempt gives the first one's issue."""
    first = await forge.create_issue("One", "# Spec", ("prio:p1", "x"), key="a")
    assert first == await forge.create_issue("One", "# Spec", ("prio:p1", "x"), key="a")
    second = await forge.create_issue("One", "# Spec", (), key="b")
    assert (first.project, second.project) == (project, project)
    assert second.number > first.number
    issue = await forge.get_issue(first)
    assert (issue.issue_ref, issue.title, issue.state, issue.assignee) == (str(first), "One", "open", "")
    assert issue.labels == ("prio:p1", "x")
    assert issue.body.startswith("# Spec")
    assert issue.read_up_to


async def issues_are_listed_by_all_of_their_labels_newest_first(forge: Forge, project: str) -> None:
    """A closed one is listed if it is asked for."""
    _ = project
    await _opened(forge, "One", ("a",))
    both = await _opened(forge, "Two", ("a", "b"))
    newest = await _opened(forge, "Three", ("a", "b"))
    listed = [issue.issue_ref for issue in await forge.list_issues(labels=("a", "b"))]
    assert listed == [str(newest), str(both)]
    assert len(await forge.list_issues(limit=1)) == 1
    await forge.mutate_issue(both, closed=True)
    assert [issue.issue_ref for issue in await forge.list_issues(labels=("b",))] == [str(newest)]
    assert [issue.issue_ref for issue in await forge.list_issues(labels=("b",), state="closed")] == [str(both)]
    assert len(await forge.list_issues(state="all")) == 3


async def lists_have_more_than_one_page(forge: Forge, project: str) -> None:
    """Every comment of a thread is there, the oldest first."""
    _ = project
    issue = await _opened(forge)
    posted = [await forge.append_event(issue, f"comment {n}", trigger=str(n)) for n in range(_MANY)]
    assert [comment.body for comment in await forge.comments(issue)] == [f"comment {n}" for n in range(_MANY)]
    assert [comment.reference for comment in await forge.comments(issue)] == [post.reference for post in posted]
    assert all(comment.own for comment in await forge.comments(issue))


async def a_comment_is_found_by_its_marker_the_oldest_of_two(forge: Forge, project: str) -> None:
    """Comments without such a marker are not found."""
    _ = project
    issue = await _opened(forge)
    marker = marker_of("workrun:1")
    assert await forge.find(issue, marker) is None
    first = await forge.append_event(issue, f"Done.\n\n{marker}", trigger="workrun:1")
    await forge.append_event(issue, f"Done.\n\n{marker}", trigger="workrun:1")
    comment = await forge.find(issue, marker, in_doubt=True)
    assert comment is not None
    assert comment.reference == first.reference
    assert await forge.find(issue, marker_of("workrun:2")) is None


async def a_change_says_what_differs_and_no_more(forge: Forge, project: str) -> None:
    """Doing it again changes nothing, and so does leaving something out."""
    _ = project
    issue = await _opened(forge, "One", ("x",))
    changed = await forge.mutate_issue(issue, labels=("state:doing", "x"), assignee="ann")
    assert (changed.labels, changed.assignee, changed.state) == (("state:doing", "x"), "ann", "open")
    closed = await forge.mutate_issue(issue, closed=True)
    assert (closed.labels, closed.assignee, closed.state) == (("state:doing", "x"), "ann", "closed")
    again = await forge.mutate_issue(issue, closed=True, assignee="ann", labels=("x", "state:doing"))
    assert again == closed
    bare = await forge.mutate_issue(issue, labels=(), assignee="", closed=False)
    assert (bare.labels, bare.assignee, bare.state) == ((), "", "open")


async def the_largest_comment_fits(forge: Forge, project: str) -> None:
    """It has as many characters as forges take."""
    _ = project
    issue = await _opened(forge)
    body = "ü" * MAX_BODY
    await forge.append_event(issue, body, trigger="t")
    assert [comment.body for comment in await forge.comments(issue)] == [body]


async def what_is_not_there_is_named(forge: Forge, project: str) -> None:
    """An issue without a number here, and one of another project."""
    calls: tuple[Callable[[IssueRef], Awaitable[object]], ...] = (
        forge.get_issue,
        forge.comments,
        lambda issue: forge.append_event(issue, "x", trigger="t"),
        lambda issue: forge.mutate_issue(issue, closed=True),
    )
    for missing in (IssueRef(project, 999), IssueRef("else/where", 1)):
        for call in calls:
            cause = None
            try:
                await call(missing)
            except ProviderError as error:
                cause = error.cause
            assert cause is Code.not_found


FORGE_CHECKS: Final[tuple[Check, ...]] = (
    an_issue_is_opened_once_for_each_key,
    issues_are_listed_by_all_of_their_labels_newest_first,
    lists_have_more_than_one_page,
    a_comment_is_found_by_its_marker_the_oldest_of_two,
    a_change_says_what_differs_and_no_more,
    the_largest_comment_fits,
    what_is_not_there_is_named,
)
