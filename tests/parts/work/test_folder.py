"""A project finds the folder of its runs by an id that it carries, and no other project does."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from remit.parts.work.folder import WorkFolder
from remit.process.enclosure import NoEnclosures
from remit.settings.loader import load


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def made(project: Path) -> Path:
    """Return the folder of a project, once it is made."""
    return WorkFolder(load(cwd=project, env={}), project.parent / "shared").make(NoEnclosures())


def seen(project: Path) -> Path:
    """Return where it is, for who looks alone."""
    return WorkFolder(load(cwd=project, env={}), project.parent / "shared").path


def test_who_looks_makes_nothing(project: Path) -> None:
    assert not seen(project).exists()
    assert list(project.parent.iterdir()) == [project]


def test_it_is_made_once_and_found_again(project: Path) -> None:
    place = made(project)
    assert made(project) == seen(project) == place


def test_a_project_that_was_moved_finds_it(project: Path) -> None:
    place = made(project)
    moved = project.rename(project.with_name("moved"))
    assert seen(moved) == place
    assert made(moved) == place
    assert made(moved.rename(project)) == place


def test_another_project_in_the_same_place_does_not_meet_it(project: Path) -> None:
    place = made(project)
    shutil.rmtree(project)
    project.mkdir()
    assert seen(project) != place
    assert made(project) != place


def test_a_copy_gets_one_of_its_own_and_the_first_keeps_it(project: Path) -> None:
    place = made(project)
    copy = shutil.copytree(project, project.with_name("copy"))
    assert made(copy) != place
    assert made(project) == place
    assert made(copy) == seen(copy) != place


def test_the_folder_that_an_older_remit_made_by_the_path_is_taken_over(project: Path) -> None:
    earlier = project.parent / "shared" / sha256(str(project).encode()).hexdigest()[:16]
    earlier.mkdir(parents=True)
    assert seen(project) == made(project) == earlier
    assert made(project.rename(project.with_name("moved"))) == earlier


@pytest.mark.parametrize("text", ["../../etc", "work_/../..", "", "0" * 15, "/etc"])
def test_what_is_no_name_leads_nowhere(text: str, project: Path) -> None:
    (project / ".remit").mkdir()
    (project / ".remit" / "work.id").write_text(text)
    assert made(project).parent == project.parent / "shared"


def test_what_nobody_needs_is_named(project: Path) -> None:
    place = made(project)
    other = made(shutil.copytree(project, project.with_name("copy")))
    (place / "trees" / "local=231" / "run.aside1").mkdir(parents=True)
    earlier = place.with_name("0" * 16) / "trees" / "local=231" / "run"
    earlier.mkdir(parents=True)
    (earlier / ".git").write_text(f"gitdir: {project}/.git/worktrees/run")
    folder = WorkFolder(load(cwd=project, env={}), project.parent / "shared")
    assert set(map(tuple, folder.leftovers().values())) == {
        (place.with_name("0" * 16),),
        (place / "trees" / "local=231" / "run.aside1",),
    }
    shutil.rmtree(project.with_name("copy"))
    assert any(other in places for places in folder.leftovers().values())


def test_it_is_closed_to_others(project: Path) -> None:
    place = made(project)
    assert [folder.stat().st_mode & 0o777 for folder in (place.parent, place)] == [0o700, 0o700]
