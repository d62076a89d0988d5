"""`remit export` and `remit verify FILE.zip`, here and from a server."""

from __future__ import annotations

import subprocess
import zipfile

import pytest

from remit.evidence import verify
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


def test_a_package_that_its_own_check_rejects_is_not_written(ran: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    (ran.folder / "a.zip").write_bytes(b"before")
    verdict = verify.PackageVerdict("rejected", "event 4 is contradicted", "event_contradicted")
    monkeypatch.setattr(verify, "check", lambda _path: verdict)
    done = ran.here("export", "last", "-o", "a.zip", "--force", "--json")
    assert (done.status, "RECORD_CONTRADICTED" in done.out + done.err) == (1, True)
    assert (ran.folder / "a.zip").read_bytes() == b"before"


@pytest.mark.slow
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


def test_a_file_is_known_by_what_is_in_it(ran: Project) -> None:
    ran.here("export", "last", "-o", "evidence.bin")
    assert ran.here("verify", "evidence.bin").out.startswith("whole")
    ran.here("export", "last", "--format", "ocsf", "-o", "x.ocsf")
    assert ran.here("verify", "x.ocsf", "--json").json["verdict"] == "undecidable"
    with zipfile.ZipFile(ran.folder / "evidence.bin", "a") as package:
        package.writestr("../../evil", b"x")
    assert ran.here("verify", "evidence.bin").status == 7


def test_what_is_not_there_is_said(ran: Project) -> None:
    assert ran.here("export", "nothing").status == 2
    assert ran.here("verify", "nothing.zip").status == 2


@pytest.mark.slow
def test_all_of_a_time_is_exported_again_in_the_same_bytes(ran: Project) -> None:
    exported = ran.here("export", "--since", "1h", "--json").json
    assert (exported["state"], exported["streams"]) == ("whole", 1)
    since, until = exported["scope"].split("/")
    assert ran.here("run", "report").status == 0
    assert ran.here("export", "--since", since, "--until", until, "-o", "again.zip").status == 0
    assert (ran.folder / "again.zip").read_bytes() == (ran.folder / exported["file"]).read_bytes()
    assert ran.here("verify", "again.zip").out.startswith("whole")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("", "USAGE"),
        ("last --since 1h", "USAGE"),
        ("--until 1h", "USAGE"),
        ("--since yesterday", "USAGE"),
        ("--since 2026-01-01T00:00:00", "USAGE"),
        ("--since 1h --format ael", "USAGE"),
        ("--since 1h --until 2h", "INVALID_INPUT"),
        ("--since 2d --until 1d", "JOB_NOT_FOUND"),
    ],
)
def test_a_time_that_cannot_be_exported_is_refused(ran: Project, words: str, code: str) -> None:
    refused = ran.here("export", *words.split(), "--json")
    assert (refused.status, refused.error["code"]) == (2, code)
    assert ("or a time with its offset" in refused.error["remedy"]) == words.startswith(("--since y", "--since 2026"))
    assert not list(ran.folder.glob("*.zip"))
