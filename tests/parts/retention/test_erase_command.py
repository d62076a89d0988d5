"""remit erase: what it shows first, and what it needs to go on."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from remit import Options
from tests.cli.conftest import Project, project
from tests.opened import OpenRemit
from tests.parts.audit.packages import GIVEN, bought

__all__ = ["project"]


@pytest.mark.slow
async def test_what_would_go_is_what_goes(remit_in: OpenRemit) -> None:
    await bought(remit_in, note="about Zaphod", options=Options(subject="customer-7"))
    waits = await bought(remit_in, approved=False, options=Options(subject="customer-8"))
    async with remit_in(**GIVEN, work=False) as remit:
        streams = remit.service.streams
        first = await streams.erasable("customer-7")
        assert (first.values > 0, first.unfinished) == (True, ())
        assert await streams.erase("customer-7") == first
        assert (await streams.erasable("customer-7")).values == 0
        assert (await streams.erasable("customer-8")).unfinished == (f"job/{waits}",)
        assert (await streams.erasable("customer-9")).streams == 0


def test_what_an_older_remit_put_into_events_is_counted_and_the_status_says_so(project: Project) -> None:
    project.job("report")
    with closing(sqlite3.connect(project.folder / ".remit/journal.db")) as db:
        db.execute("UPDATE heads SET subject = 'customer-7'")
        db.commit()
    done = project.here("erase", "--subject", "customer-7", "--yes", "--json")
    assert (done.status, done.json["code"]) == (1, "ERASURE_INCOMPLETE")
    assert (done.json["values"], done.json["left"] > 0) == (0, True)
    done = project.here("erase", "--subject", "customer-7", "--yes")
    assert (done.status, "cannot be erased" in done.out, "ERASURE_INCOMPLETE" in done.err) == (1, True, True)
    assert project.here("verify").status == 0


def test_a_job_that_was_started_about_a_subject_is_erased_with_it(project: Project) -> None:
    assert project.here("run", "greet", "--name", "zaphod", "--about", "customer-7").status == 0
    assert "zaphod" in project.here("show", "last").out
    assert project.here("erase", "--subject", "customer-7", "--yes").status == 0
    assert "zaphod" not in project.here("show", "last").out
    assert project.here("verify", "last").status == 0


@pytest.mark.parametrize("subject", ["", " ", "ann ", "ann\tb", "ann\u202e", "a" * 201])
def test_a_subject_is_a_name_that_can_be_typed_again(project: Project, subject: str) -> None:
    done = project.here("run", "greet", "--name", "zaphod", "--about", subject, "--json")
    assert (done.status, done.error["code"]) == (2, "NAME_INVALID")
    assert project.here("jobs", "--json").json == []


def test_nothing_is_erased_unasked(project: Project, remit_in: OpenRemit) -> None:
    job = asyncio.run(bought(remit_in, note="about Zaphod", options=Options(subject="customer-7")))
    here = ("--journal", "journal.db")
    words = (*here, "erase", "--subject", "customer-7")
    assert "STREAM_NOT_FOUND" in project.here(*here, "erase", "--subject", "customer-8").err
    assert project.here(*here, "erase").status == 2
    dry = project.here(*words, "--dry-run", "--json").json
    assert (dry["dry_run"], dry["values"] > 0, dry["left"]) == (True, True, 0)
    refused = project.here(*words)
    assert (refused.status, "--yes" in refused.err) == (2, True)
    assert "Zaphod" in project.here(*here, "show", job).out
    done = project.here(*words, "--yes", "--json")
    assert (done.status, done.json["values"]) == (0, dry["values"])
    assert "Zaphod" not in project.here(*here, "show", job).out
    assert project.here(*here, "verify").status == 0
