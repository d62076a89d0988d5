"""Many questions answered at once, each bound to its digest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Project

MANY = ("confirm", "--tool", "note.write")


@pytest.fixture
def asked(project: Project) -> list[Any]:
    """Three calls and a question of a recipe that wait."""
    for name in ("a", "b", "c"):
        project.job("notes", "--path", f"{name}.txt")
    project.job("asks")
    questions: list[Any] = project.here("confirm", "--json").json
    return questions


def test_questions_are_listed_by_tool_with_what_differs(project: Project, asked: list[Any]) -> None:
    assert len(asked) == 4
    shown = project.here(*MANY)
    assert [name for name in ("a", "b", "c") if f"path: {name}.txt" in shown.out] == ["a", "b", "c"]
    assert "text:" not in shown.out
    assert "Shall we go on?" not in shown.out
    assert "Shall we go on?" in project.here("confirm", "--recipe", "asks").out
    assert project.here("confirm", "--label", "team=a", "--json").json == []
    assert "no such questions are open" in project.here("confirm", "--principal", "nobody").err


def test_those_that_were_seen_are_answered_and_no_later_one(project: Project, asked: list[Any]) -> None:
    digests = [one["digest"] for one in asked if one["tool"]]
    first = asked[0]["confirmation"]
    assert project.here("confirm", first, "--deny").status == 0
    project.job("notes", "--path", "later.txt")
    (project.folder / "seen").write_text("\n".join(digests))
    done = project.here(*MANY, "--approve", "--yes", "--digests", "@seen", "--json")
    assert done.status == 1
    assert [(one["state"], one["code"]) for one in done.json] == [
        ("approved", ""),
        ("approved", ""),
        ("", "CONFIRMATION_MISMATCH"),
    ]
    assert [one["args"]["path"] for one in project.here(*MANY, "--json").json] == ["later.txt"]


def test_many_are_denied_with_the_reason(project: Project, asked: list[Any]) -> None:
    digests = ",".join(one["digest"] for one in asked if one["tool"])
    done = project.here(*MANY, "--deny", "--yes", "--digests", digests, "--reason", "Not today.")
    assert (done.status, "deny: 3 of 3" in done.err) == (0, True)
    assert len(project.here("confirm", "--json").json) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("--approve",),
        ("--approve", "--yes"),
        ("--approve", "--json"),
        ("--approve", "--digests", "sha256:0"),
        ("--yes",),
        ("--approve", "--remember", "job"),
        ("--edit", "{}"),
    ],
)
def test_nothing_is_answered_that_nobody_saw(project: Project, asked: list[Any], words: tuple[str, ...]) -> None:
    assert project.here(*MANY, *words).status == 2
    assert project.here("confirm", asked[0]["confirmation"], *words, "--tool", "note.write").status == 2
    assert len(project.here("confirm", "--json").json) == 4


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "left"), [("3", 1), ("yes", 4), ("", 4)])
def test_at_a_terminal_each_call_is_shown_and_their_number_is_typed(
    project: Project, asked: list[Any], typed: str, left: int
) -> None:
    assert len(asked) == 4
    with project.terminal(*MANY, "--approve", env={"PAGER": "cat"}) as screen:
        for name in ("a", "b", "c"):
            screen.expect(f'"path": "{name}.txt"')
        screen.expect("type 3 to approve all 3")
        screen.type(f"{typed}\r")
        screen.expect("approve: 3 of 3" if left == 1 else "left for later")
        assert screen.end() == 0
    assert len(project.here("confirm", "--json").json) == left


@pytest.mark.parametrize("words", [("show",), ("a", "b"), ("show", "last", "--approve"), ("show", "a", "b")])
def test_one_question_is_meant(project: Project, words: tuple[str, ...]) -> None:
    assert project.here("confirm", *words).status == 2
