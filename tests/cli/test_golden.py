"""`remit golden` and `remit check` at a terminal."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Project


def test_jobs_are_exported_by_label_and_checked(project: Project) -> None:
    project.here("run", "greet", "--name", "bob", "--label", "suite=ci")
    project.here("run", "greet", "--name", "ann")
    made = project.here("golden", "add", "--label", "suite=ci", "--json").json
    assert len(made) == 1
    assert project.here("golden", "add", "last", "--name", "ann").status == 0
    found = project.here("check", "--json")
    assert (found.status, found.json["counts"]["same"]) == (0, 2)
    assert project.here("check", "--label", "suite=ci", "--json").json["counts"]["same"] == 1
    file = project.folder / "golden" / "ann.golden.jsonl"
    file.write_bytes(file.read_bytes()[:-30])
    cut = project.here("check", "--junit", "j.xml", "--markdown", "m.md")
    assert (cut.status, "cut short" in cut.out or "not JSON" in cut.out) == (2, True)
    assert (project.folder / "j.xml").exists()
    assert (project.folder / "m.md").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("golden", "add"),
        ("golden", "add", "last", "--label", "a=b"),
        ("golden", "add", "last", "--name", "../x"),
        ("golden", "add", "--label", "a"),
        ("golden", "add", "last", "--secret-env", "NOT_SET"),
        ("check",),
        ("check", "nothing-there"),
    ],
)
def test_what_does_not_fit_is_said(project: Project, words: tuple[str, ...]) -> None:
    project.here("run", "greet", "--name", "bob")
    ran = project.here(*words)
    assert (ran.status, "->" in ran.err or "failed" in ran.out) == (2, True)


def test_without_golden_jobs_a_check_says_how_to_keep_one(project: Project) -> None:
    done = project.here("check")
    assert (done.status, "GOLDEN_INVALID: there is no golden job" in done.err, "remit golden add" in done.err) == (
        2,
        True,
        True,
    )
