"""`remit export` and `remit verify FILE.zip`, here and from a server."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.conftest import Project, project

__all__ = ["project"]


@pytest.fixture
def ran(project: Project) -> Project:
    """A project with a job that ended."""
    assert project.here("run", "report").status == 0
    return project


def test_a_job_is_exported_and_checked(ran: Project) -> None:
    exported = ran.here("export", "last", "--json").json
    assert (exported["state"], exported["problem"]) == ("whole", "")
    assert ran.here("verify", exported["file"], "--json").json["hash"] == exported["hash"]
    assert ran.here("verify", exported["file"]).out.startswith("whole")


def test_nothing_is_overwritten_unasked(ran: Project) -> None:
    assert ran.here("export", "last", "-o", "one.zip").status == 0
    assert ran.here("export", "last", "-o", "one.zip").status == 2
    assert ran.here("export", "last", "-o", "one.zip", "--force").status == 0


def test_a_package_goes_to_stdout_whole(ran: Project) -> None:
    ran.here("export", "last", "-o", "one.zip")
    command = ran.command("export", "last", "-o", "-")
    written = subprocess.run(command, cwd=ran.folder, env=ran.env, capture_output=True, check=True).stdout
    assert written == (ran.folder / "one.zip").read_bytes()


def test_a_package_that_was_changed_is_damaged(ran: Project) -> None:
    ran.here("export", "last", "-o", "one.zip")
    place = ran.folder / "one.zip"
    place.write_bytes(place.read_bytes() + b"x")
    rejected = ran.here("verify", "one.zip")
    assert (rejected.status, rejected.out.split()[0]) == (7, "rejected")


def test_what_is_not_there_is_said(ran: Project) -> None:
    assert ran.here("export", "nothing").status == 2
    assert ran.here("verify", "nothing.zip").status == 2
