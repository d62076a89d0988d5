"""`remit export --anchored` and `remit doctor` with a log, without one, and with the wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Project, project
from tests.parts.audit.anchoring.log import LOG, holder, log_in
from tests.parts.audit.formats.errands import key_in

__all__ = ["project"]

EXPORT = ("export", "last", "--format", "ael", "--anchored", "--force", "--json")


def configure(project: Project, url: str, key: str) -> None:
    """Name a log."""
    own = f'key = "{key_in(project.folder)}"\nanchor_url = "{url}"\nanchor_key = "{key}"\n'
    project.configure(f"[audit]\n{own}")


@pytest.fixture
def ran(project: Project) -> Project:
    """A project with a job that ended."""
    assert project.here("run", "chatty").status == 0
    return project


def test_a_job_that_no_second_recorder_saw_has_no_anchors(ran: Project, tmp_path: Path) -> None:
    with log_in(tmp_path, holder(5)) as client:
        configure(ran, client.url, str(LOG.key))
        done = ran.here(*EXPORT)
    assert (done.status, done.json["format"], done.json["anchors"]) == (0, "ael", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "key", "code"),
    [
        ("", "", "USAGE"),
        ("http://127.0.0.1:9", "", "SETTINGS_INVALID"),
        ("http://127.0.0.1:9", "witness.example", "SETTINGS_INVALID"),
    ],
)
def test_a_log_that_cannot_be_asked_ends_the_export(ran: Project, url: str, key: str, code: str) -> None:
    configure(ran, url, key)
    done = ran.here(*EXPORT)
    assert (done.status, done.error["code"]) == (2, code)
    assert not [*ran.folder.glob("*.ael.zip")]
    check = next(row for row in ran.here("doctor", "--json").json if row["name"] == "audit")
    assert check["verdict"] == ("fail" if code == "SETTINGS_INVALID" else "ok")


def test_anchors_are_of_ael_alone(ran: Project) -> None:
    assert ran.here("export", "last", "--anchored").status == 2
