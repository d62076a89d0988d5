"""remit journal seal, and what remit verify says of seals."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Project

DAMAGED = 7
UNCHECKED = 8


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


@pytest.mark.whole
@pytest.mark.parametrize("where", ["renamed", "copied", "linked"])
def test_a_project_that_lies_elsewhere_is_checked_and_goes_on_under_its_key(
    trusting: Project, tmp_path_factory: pytest.TempPathFactory, where: str
) -> None:
    """The key is found by the id that heads name, and is named where it is looked for."""
    waits = trusting.job("notes", "--path", "a.txt")
    (key,) = keys_of(trusting)
    there = tmp_path_factory.mktemp("there") / "project"
    if where == "renamed":
        data = there.parent / "data"
        shutil.move(key.parents[2], data)
        trusting.env["XDG_DATA_HOME"] = str(data)
        key = data / key.relative_to(key.parents[2])
        shutil.move(trusting.folder, there)
    elif where == "copied":
        trusting.env["XDG_DATA_HOME"] = str(key.parents[2])
        shutil.copytree(trusting.folder, there)
    else:
        trusting.env["XDG_DATA_HOME"] = str(key.parents[2])
        there.mkdir()
        shutil.copy(trusting.folder / "remit.toml", there)
        (there / ".remit").symlink_to(trusting.folder / ".remit")
    trusting.folder = there
    trusting.here("trust", "--yes")
    assert trusting.here("verify", "--json").json["keyless"] == 0
    (question,) = trusting.here("confirm", "--json").json
    assert trusting.here("confirm", question["confirmation"], "--deny").status == 0
    assert trusting.here("resume", waits).status != UNCHECKED
    done = trusting.here("verify", "--json").json
    assert (done["ok"], done["sealed"]) == (True, done["streams"])
    checks = {check["name"]: check for check in trusting.here("doctor", "--json").json}
    assert str(key) in checks["seals"]["detail"]
    backup = trusting.here("journal", "backup", "b.db", "--json").json
    assert backup["key_file"] == str(key)


def test_without_the_key_everything_is_looked_at_and_nothing_is_written(trusting: Project) -> None:
    waits = trusting.job("notes", "--path", "a.txt")
    (key,) = keys_of(trusting)
    kept = key.rename(trusting.folder / "key")
    done = trusting.here("verify")
    assert (done.status, "damaged" in done.out, "KEY_MISSING" in done.err) == (UNCHECKED, False, True)
    assert trusting.here("show", waits, "--json").json["row"]["state"] == "waiting"
    for words in (
        *(("export", waits), ("run", "report"), ("resume", waits), ("worker",), ("journal", "seal")),
        *(("journal", "backup", "b.db"), ("journal", "activate"), ("journal", "copy", ".remit/journal.db", "c.db")),
    ):
        done = trusting.here(*words)
        if words != ("journal", "activate"):  # it runs jobs already: nothing is written
            assert (done.status, "KEY_MISSING" in done.err) == (UNCHECKED, True), words
    assert keys_of(trusting) == []
    kept.rename(key.with_name("brought-by-hand.keys"))
    assert trusting.here("verify").status == 0
    assert trusting.here("export", waits).status == 0


def test_who_vouches_for_what_could_not_be_checked_is_recorded(trusting: Project) -> None:
    trusting.job("report")
    (key,) = keys_of(trusting)
    former = trusting.here("verify", "--json").json
    key.unlink()
    missing = trusting.here("verify", "--json").json["key"]
    assert trusting.here("journal", "seal", "--vouch").status == 0
    done = trusting.here("verify", "--json").json
    assert (done["ok"], done["sealed"], done["streams"]) == (True, done["streams"], former["streams"] + 1)
    with closing(sqlite3.connect(trusting.folder / ".remit/journal.db")) as db:
        ((data,),) = db.execute("SELECT data FROM events WHERE kind = 'journal_vouched'").fetchall()
    vouched = json.loads(data)
    assert (vouched["former"], bool(vouched["by"])) == (missing, True)


def test_a_head_of_another_key_is_damage_and_is_not_sealed_unseen(trusting: Project) -> None:
    trusting.job("report")
    trusting.job("report")
    forge(trusting, "UPDATE heads SET seal = CAST(x'0102030405060708' || substr(seal, 9) AS BLOB) WHERE id = 1")
    assert trusting.here("verify", "--json").json["codes"] == ["HEAD_UNSEALED"]
    assert trusting.here("journal", "seal").status == DAMAGED
    assert trusting.here("verify").status == DAMAGED
    assert trusting.here("journal", "seal", "--vouch").status == 0
    assert trusting.here("verify").status == 0


def test_a_new_journal_at_the_path_of_one_that_moved_has_a_key_of_its_own(trusting: Project) -> None:
    trusting.job("report")
    (first,) = keys_of(trusting)
    kept = first.read_bytes()
    (trusting.folder / ".remit").rename(trusting.folder / "moved")
    trusting.job("report")
    assert [path.read_bytes() for path in keys_of(trusting)].count(kept) == 1
    assert len({path.read_bytes() for path in keys_of(trusting)}) == 2
    assert trusting.here("journal", "seal", "--new-key").status == 0
    assert trusting.here("--journal", "moved/journal.db", "verify").status == 0


def test_many_problems_come_after_their_number_and_twenty_at_once(trusting: Project) -> None:
    for _ in range(22):
        trusting.job("report")
    forge(trusting, "UPDATE heads SET title = 'nothing to see' WHERE kind = 'job'")
    done = trusting.here("verify")
    assert (len(done.out.splitlines()), "22 of 22 streams" in done.err) == (20, True)
    assert len(trusting.here("verify", "--all").out.splitlines()) == 22


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
    assert trusting.here("verify").status == UNCHECKED


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
