"""The rules of the flow: what an issue waits for, and which comes first."""

from __future__ import annotations

import pytest

from remit.parts.work.unit import dependencies_in, urgency


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("", []),
        ("## DependsOn\n\n- local#2\n- #3\n\n## Goal\n- local#9\n", ["local#2", "local#3"]),
        ("DependsOn: org/a#1, group/b/c#2\nBlockedBy: none\nSee local#7.", ["org/a#1", "group/b/c#2"]),
        ("**BlockedBy**: local#4 and local#4", ["local#4"]),
        ("## DependsOn\n#12\n", ["local#12"]),
        ("depends on local#4; a#b; #0", []),
    ],
)
def test_dependencies_stand_behind_their_names(body: str, found: list[str]) -> None:
    assert [str(one) for one in dependencies_in(body, "local")] == found


def test_an_issue_without_a_priority_comes_last() -> None:
    assert sorted([("x",), ("prio:p1", "x"), ("prio:p0",)], key=urgency) == [("prio:p0",), ("prio:p1", "x"), ("x",)]
