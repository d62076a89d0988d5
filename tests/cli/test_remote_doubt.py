"""A step whose outcome is unknown, decided through a server."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Project, lines_until
from tests.cli.test_remote import Stage, far, serving

pytestmark = pytest.mark.slow


def test_a_step_in_doubt_is_decided_through_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project(tmp_path, monkeypatch, capsys)
    os.mkfifo(project.folder / "n")  # the call never ends
    with project.start("run", "risky", "--done", "n") as worker:
        told = lines_until(worker, lambda line: "a write is under way" in line)
        worker.kill()
        worker.communicate()
    job = re.findall(r"job_\w{26}", "".join(told))[0]
    with serving(project) as url:
        stage = Stage(project.folder, url, {})
        waiting = far(project, stage, "resume", job)
        assert waiting.status == 4
        assert f"remit decide {job} 1 --attempt 1 --done VALUE | --retry | --fail" in waiting.err
        misshapen = ("decide", job, "1", "--done", "[1]", "--json")
        assert far(project, stage, *misshapen) == project.here(*misshapen)
        assert far(project, stage, "decide", job, "1", "--attempt", "1", "--done", '"it was written"').status == 0
        far(project, stage, "trace", job, "--follow")
        assert far(project, stage, "show", job, "--json").json["result"] == "it was written"
