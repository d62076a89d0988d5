"""Who reads what is recorded before it leaves, where the settings say so."""

from __future__ import annotations

import pytest

from remit.errors import JournalError
from remit.http.reader import Read
from tests.cli.conftest import Project, project
from tests.opened import OpenRemit
from tests.pages.conftest import serving, token
from tests.parts.audit.packages import GIVEN, bought

__all__ = ["project"]

CASES = {
    "off": [],
    "values": ["jobs.view", "/jobs/{job}", "/jobs/{job}/trace.html", "audit.trace"],
    "all": ["jobs.page", "jobs.view", "/jobs", "/jobs/{job}", "/jobs/{job}/trace.html", "audit.trace"],
}


@pytest.mark.slow
@pytest.mark.parametrize("reads", CASES)
async def test_reads_are_recorded_as_the_settings_say(remit_in: OpenRemit, reads: str) -> None:
    job = await bought(remit_in)
    async with remit_in(**GIVEN, work=False, flags={"audit.reads": reads}) as remit:
        readers = remit.readers()
        async with serving(remit, [token("mia", "read")], readers=readers) as browser:
            await browser.log_in("secret-mia")
            for path in ("/v1/jobs", f"/v1/jobs/{job}"):
                await browser.get(path, headers={"authorization": "Bearer secret-mia"})
            for path in ("/jobs", f"/jobs/{job}", f"/jobs/{job}/trace.html"):
                assert (await browser.get(path)).status == 200
            await browser.get(f"/v1/jobs/{job}/trace.html", headers={"authorization": "Bearer secret-mia"})
            assert (await browser.get("/jobs/job_none")).status == 404
        found = await remit.service.audit.ask(what="read")
        assert [entry.name for entry in reversed(found.entries)] == CASES[reads]
        assert {entry.who for entry in found.entries} <= {"mia"}
        own = await remit.service.audit.ask(job, what="read")
        assert [entry.name for entry in reversed(own.entries)] == CASES["values"] * (reads != "off")
        assert all(entry.names == {"job": job} for entry in own.entries)


async def test_what_cannot_be_recorded_does_not_leave(remit_in: OpenRemit) -> None:
    job = await bought(remit_in)

    async def refuse(_read: Read) -> None:
        raise JournalError("the disk is full")

    async with remit_in(**GIVEN, work=False) as remit, serving(remit, readers=[refuse]) as browser:
        for path in (f"/v1/jobs/{job}", f"/jobs/{job}", f"/v1/jobs/{job}/events/live"):
            got = await browser.get(path)
            assert (got.status, job in got.text.replace(path, "")) == (503, False), path


def test_an_export_by_command_is_recorded(project: Project) -> None:
    project.configure('\n[audit]\nreads = "values"\n')
    assert project.here("run", "report").status == 0
    assert project.here("export", "last", "--output", "one.zip").status == 0
    assert project.here("audit", "last", "--html", "one.html").status == 0
    found = project.here("audit", "--what", "read", "--json").json["entries"]
    assert [(one["who"], one["name"], one["face"]) for one in found] == [
        ("alice", "audit --html", "command"),
        ("alice", "export", "command"),
    ]
    assert "audit --html" in project.here("audit", "last", "--what", "read").out
