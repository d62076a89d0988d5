"""remit journal copy: what it says, and that a copy which cannot begin makes nothing."""

from __future__ import annotations

import apsw
import pytest

from tests.cli.conftest import Finished, Project

HERE, THERE = ".remit/journal.db", "there.db"


def copy(project: Project, *words: str) -> Finished:
    return project.here("journal", "copy", HERE, THERE, *words)


def test_a_copy_holds_the_same_and_the_job_is_looked_at_there(project: Project) -> None:
    job = project.job("report")
    done = copy(project)
    assert done.status == 0
    assert done.out.startswith("ok ")
    assert done.out.endswith(f"{THERE} holds the same\n")
    there = project.here("--journal", THERE, "show", job, "--json").json
    assert there == project.here("show", job, "--json").json
    assert project.here("--journal", THERE, "verify", job).status == 0


def test_as_json_it_says_how_much_there_is_and_how_much_of_it_is_new(project: Project) -> None:
    project.job("report")
    first, again = copy(project, "--backup", "--json").json, copy(project, "--backup", "--json").json
    assert first["added"] == first["events"] > 0
    assert again == {**first, "added": 0}


def test_a_journal_that_moved_says_where_to_and_can_be_taken_back(project: Project) -> None:
    job = project.job("notes", "--path", "n.txt")
    assert copy(project).status == 0
    for words in (
        ("resume", job),
        ("run", "report", "--detach"),
        ("worker",),
        ("journal", "copy", HERE, THERE),
    ):
        done = project.here(*words)
        assert (done.status, "JOURNAL_MOVED" in done.err, THERE in done.err) == (1, True, True), words
    listed = project.here("jobs")
    assert (job[-12:] in listed.out, "JOURNAL_MOVED" in listed.err, THERE in listed.err) == (True, True, True)
    checked = {one["name"]: one for one in project.here("doctor", "--json").json}["journal"]
    assert (checked["verdict"], THERE in checked["detail"]) == ("warn", True)
    assert project.here("verify").status == 0
    assert project.here("journal", "activate", "--json").json["state"] == "moved"
    assert project.here("resume", job).status == 4


def test_a_backup_runs_no_jobs_until_it_is_activated(project: Project) -> None:
    job = project.job("notes", "--path", "n.txt")
    assert copy(project, "--backup").status == 0
    assert "JOURNAL_BACKUP" in project.here("--journal", THERE, "resume", job).err
    assert project.here("resume", job).status == 4
    assert project.here("--journal", THERE, "journal", "activate").status == 0
    assert project.here("--journal", THERE, "resume", job).status == 4


def test_while_a_process_has_the_journal_open_nothing_is_made(project: Project) -> None:
    project.job("report")
    db = apsw.Connection(str(project.folder / HERE))
    db.execute("SELECT * FROM heads").fetchall()
    done = copy(project)
    db.close()
    assert (done.status, "JOURNAL_LOCKED" in done.err) == (1, True)
    assert not (project.folder / THERE).exists()


def test_a_job_that_waits_goes_on_in_the_copy_and_stays_as_it_is_in_the_original(project: Project) -> None:
    job = project.job("notes", "--path", "n.txt")
    assert copy(project).status == 0
    (question,) = project.here("--journal", THERE, "confirm", "--json").json
    assert project.here("--journal", THERE, "confirm", question["confirmation"], "--approve").status == 0
    assert project.here("--journal", THERE, "resume", job).status == 0
    assert project.here("show", job, "--json").json["row"]["state"] == "waiting"


@pytest.mark.parametrize("source", ["none.db", "empty.db", "remit.toml"])
def test_where_there_is_nothing_to_copy_nothing_is_made(project: Project, source: str) -> None:
    (project.folder / "empty.db").touch()
    done = project.here("journal", "copy", source, THERE)
    assert done.status != 0
    assert source in done.err
    assert not (project.folder / THERE).exists()


def test_while_a_job_is_worked_on_nothing_is_made(project: Project) -> None:
    job = project.job("report")
    db = apsw.Connection(str(project.folder / HERE))
    db.execute("UPDATE heads SET closed = 0, lease_owner = 'w', lease_until = ? WHERE kind = 'job'", (2**52,))
    db.close()
    done = copy(project)
    assert (done.status, job in done.err) == (1, True)
    assert not (project.folder / THERE).exists()


def test_a_journal_is_not_copied_onto_itself(project: Project) -> None:
    project.job("report")
    done = project.here("journal", "copy", HERE, f".remit/../{HERE}")
    assert (done.status, "the same journal" in done.err) == (2, True)


def test_shards_of_a_journal_that_is_not_there_make_none(project: Project) -> None:
    assert project.here("journal", "shards", "--json").error["code"] == "USAGE"
    assert not (project.folder / HERE).exists()
