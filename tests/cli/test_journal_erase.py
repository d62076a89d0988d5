"""remit journal erase: what it takes away, and what it says it could not."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.cli.conftest import Project


def about(project: Project, subject: str) -> str:
    """The stream of a job, as if it had been started about a subject by an older Remit: its values stand in events."""
    job = project.job("report")
    with closing(sqlite3.connect(project.folder / ".remit/journal.db")) as db:
        db.execute("UPDATE heads SET subject = ?", (subject,))
        db.commit()
    return job


def test_values_that_cannot_be_erased_are_counted_and_the_status_says_so(project: Project) -> None:
    about(project, "customer-7")
    done = project.here("journal", "erase", "customer-7", "--reason", "asked to", "--json")
    assert done.status == 1
    assert (done.json["code"], done.json["values"], done.json["left"] > 0) == ("ERASURE_INCOMPLETE", 0, True)
    done = project.here("journal", "erase", "customer-7")
    assert (done.status, "ERASURE_INCOMPLETE" in done.out) == (1, True)
    assert project.here("verify").status == 0


def test_a_subject_that_no_job_has_is_an_error(project: Project) -> None:
    project.job("report")
    done = project.here("journal", "erase", "customer-8")
    assert (done.status, "STREAM_NOT_FOUND" in done.err) == (2, True)
