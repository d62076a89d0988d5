"""`remit upgrade --check`: what this Remit would do with what another one left."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import apsw
import pytest

from remit.journal.sqlite.schema import VERSION
from tests.cli.conftest import Project, project
from tests.journal.test_old_journals import OLD, version_of
from tests.record.old.make import ARCHIVE

__all__ = ["project"]

pytestmark = pytest.mark.slow
MODULE = '''
from remit import Run, recipe

@recipe("slow")
async def slow(run: Run) -> None:
    """Wait for a word."""
    await run.{method}
    await run.wait_signal("go")
'''


def findings(project: Project, *words: str, status: int = 0) -> dict[str, tuple[str, str]]:
    done = project.here("upgrade", *words, "--json")
    assert done.status == status, done
    return {one["name"]: (one["verdict"], one["code"]) for one in done.json}


def test_what_fits_is_said_and_nothing_is_written(project: Project) -> None:
    assert project.here("run", "greet", "--name", "ada").status in {0, 2}
    assert {verdict for verdict, _ in findings(project, "--check").values()} == {"ok"}


def test_a_job_that_would_take_another_way_is_named(project: Project) -> None:
    module = project.folder / "slow.py"
    module.write_text(MODULE.format(method="now()"))
    (project.folder / "remit.toml").write_text('[app]\nmodules = ["slow.py"]\n')
    project.here("run", "slow")
    assert project.here("show", "last", "--json").json["state"] == "waiting"
    assert findings(project, "--check")["code"] == ("ok", "")
    module.write_text(MODULE.format(method="random()"))
    assert findings(project, "--check", status=1)["code"] == ("fail", "NONDETERMINISTIC")


def test_settings_that_cannot_be_read_are_a_finding(project: Project) -> None:
    (project.folder / "remit.toml").write_text("[jobs]\nconcurency = 3\n")
    assert findings(project, "--check", status=1) == {"settings": ("fail", "SETTINGS_INVALID")}


def test_an_older_journal_is_named_left_alone_by_the_check_and_brought_up_to_date(
    project: Project, tmp_path: Path
) -> None:
    path = tmp_path / "old.db"
    shutil.copyfile(OLD, path)
    words = ("--journal", str(path), "upgrade")
    assert '"warn"' in project.here(*words, "--check", "--json").out
    assert version_of(path) == 1
    assert project.here(*words).status == 0
    assert version_of(path) == VERSION


def test_a_journal_of_a_newer_remit_is_refused_in_words(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    shutil.copyfile(OLD, path)
    assert project.here("--journal", str(path), "upgrade").status == 0
    db = apsw.Connection(str(path))
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    for words in (("upgrade", "--check"), ("upgrade",)):
        done = project.here("--journal", str(path), *words)
        assert done.status == 1
        assert "JOURNAL_NEWER" in done.out
        assert "backup" in done.out


def test_every_kept_journal_opens(project: Project, tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    kept = sorted(tmp_path.rglob("*.db")) + sorted(tmp_path.rglob("*.sqlite"))
    assert kept
    for path in kept:
        done = project.here("--journal", str(path), "upgrade")
        assert done.status == 0, done
        assert project.here("--journal", str(path), "verify").status == 0
