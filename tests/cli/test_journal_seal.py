"""remit journal seal, and what remit verify says of seals."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Project

DAMAGED = 7


@pytest.fixture
def trusting(project: Project) -> Project:
    """A project whose journals are its own; the rest of the tests say they trust everything."""
    project.env.pop("REMIT_TRUST")
    project.here("trust", "--yes")
    return project


def forge(project: Project, sql: str) -> None:
    with closing(sqlite3.connect(project.folder / ".remit/journal.db")) as db:
        db.execute(sql)
        db.commit()


def keys_of(project: Project) -> list[Path]:
    return sorted(project.folder.glob(".local/share/remit/journal-keys/*.keys"))


def test_a_journal_that_is_made_here_is_sealed_from_the_beginning(trusting: Project) -> None:
    trusting.job("report")
    (key,) = keys_of(trusting)
    assert key.stat().st_mode & 0o777 == 0o600
    done = trusting.here("verify")
    assert done.status == 0
    assert "every head is sealed" in done.out


def test_a_forged_title_is_found_and_named_with_its_code(trusting: Project) -> None:
    trusting.job("report")
    forge(trusting, "UPDATE heads SET title = 'nothing to see' WHERE kind = 'job'")
    done = trusting.here("verify")
    assert done.status == DAMAGED
    assert done.out.startswith("damaged HEAD_FORGED: ")
    assert trusting.here("verify", "--json").json["codes"] == ["HEAD_FORGED"]


def test_a_key_that_was_deleted_is_missed(trusting: Project) -> None:
    trusting.job("report")
    (key,) = keys_of(trusting)
    kept = key.read_bytes()
    key.unlink()
    done = trusting.here("verify", "--json")
    assert (done.status, set(done.json["codes"])) == (DAMAGED, {"HEAD_UNSEALED"})
    key.write_bytes(kept)
    key.chmod(0o600)
    assert trusting.here("verify").status == 0


def test_resuming_everything_ends_and_names_the_job_that_was_forged(trusting: Project) -> None:
    forged, other = trusting.job("notes", "--path", "a.txt"), trusting.job("notes", "--path", "b.txt")
    forge(trusting, f"UPDATE heads SET title = 'harmless' WHERE stream = 'job/{forged}'")
    done = trusting.here("resume", "--all")
    assert done.status == DAMAGED
    assert f"damaged HEAD_FORGED: job/{forged}" in done.err
    assert other in done.out + done.err
    done = trusting.here("resume", forged)
    assert (done.status, "HEAD_FORGED" in done.err) == (1, True)


def test_a_journal_of_before_says_so_and_can_be_sealed(project: Project) -> None:
    project.job("report")
    assert keys_of(project) == [], "a journal made under REMIT_TRUST=1 may outlive the home folder"
    done = project.here("verify")
    assert done.status == 0
    assert "remit journal seal" in done.err
    done = project.here("journal", "seal")
    assert done.status == 0
    assert "had no seal: job/" in done.out
    assert "every head is sealed" in project.here("verify").out
    assert project.here("journal", "seal", "--json").json["sealed"] == 0


def test_a_new_key_takes_the_place_of_the_old_one(trusting: Project) -> None:
    trusting.job("report")
    (key,) = keys_of(trusting)
    before = key.read_text()
    assert trusting.here("journal", "seal", "--new-key").status == 0
    assert len(key.read_text()) == len(before)
    assert key.read_text() != before
    assert trusting.here("verify").status == 0
    key.write_text(before)
    assert "HEAD_UNSEALED" in trusting.here("verify").out


def test_what_was_forged_stays_so_and_both_keys_stay(trusting: Project) -> None:
    trusting.job("report")
    forge(trusting, "UPDATE heads SET title = 'nothing to see' WHERE kind = 'job'")
    done = trusting.here("journal", "seal", "--new-key")
    assert done.status == DAMAGED
    assert done.out.startswith("damaged HEAD_FORGED: ")
    (key,) = keys_of(trusting)
    assert len(key.read_text().split()) == 2
    assert trusting.here("verify").status == DAMAGED


def test_a_key_in_the_project_folder_is_refused(project: Project) -> None:
    project.job("report")
    project.configure('[journal]\nkey_file = "journal.keys"\n')
    done = project.here("journal", "seal")
    assert done.status == 2
    assert "project folder, next to the journal" in done.err


def test_a_key_file_of_one_s_own_is_made_by_sealing_and_missed_without(project: Project, tmp_path: Path) -> None:
    project.job("report")
    place = tmp_path.parent / f"{tmp_path.name}-keys" / "journal.keys"
    project.configure(f'[journal]\nkey_file = "{place}"\n')
    assert "does not exist" in project.here("verify").err
    assert project.here("journal", "seal").status == 0
    assert place.exists()
    assert "every head is sealed" in project.here("verify").out


def test_there_is_nothing_to_seal_without_a_journal(project: Project) -> None:
    assert project.here("journal", "seal").status == 2
    assert keys_of(project) == []
