"""The whole way of a snippet: run at a terminal, killed in the middle, resumed, replayed, its files taken."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.parts.sandbox.scratch import scratch
from tests.cli.conftest import Project
from tests.parts.sandbox.test_programs import PLOT, packages

MARK = "2.0417"
CODE = f"""
import subprocess
waiting = subprocess.Popen(["sleep", "{MARK}"])
with open("log", "a") as log:
    log.write("run ")
print("begun", flush=True)
waiting.wait()
{PLOT}
print(open("log").read())
"""


@pytest.fixture
def science(project: Project) -> Iterator[Project]:
    """A project whose snippets may run, with numpy and its like."""
    rule = '[[policy.rules]]\nid = "code"\neffect = "allow"\ntools = ["sandbox.*"]\n'
    with scratch() as folder:
        folder.chmod(0o711)
        table = f'[sandbox]\npackages = ["python={packages()}"]\nfolder = "{folder}"\n'
        project.configure(rule + table, modules=False)
        yield project


def test_a_snippet_that_draws_is_killed_resumed_and_replayed(science: Project) -> None:
    with science.terminal("run", "run_code_snippet", "--language", "python", "--code", CODE) as terminal:
        terminal.expect("begun")
        [left] = [
            int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if words_of(path) == ["sleep", MARK]
        ]
        pidfd = os.pidfd_open(left)
        os.killpg(terminal.process.pid, signal.SIGKILL)
        terminal.process.wait()
    assert select.select([pidfd], [], [], 20)[0], "what ran in the sandbox outlived Remit"
    os.close(pidfd)
    resumed = science.apart("resume", "last", "--json")
    assert resumed.status == 0, resumed.err
    found = resumed.json["result"]
    assert (found["status"], found["restored"]) == ("SUCCEEDED", True)
    assert found["stdout"].endswith("run \n")  # once: the first attempt was undone
    assert "run run" not in found["stdout"]
    images = [one for one in found["artifacts"] if one["media_type"] == "image/png"]
    assert [one["path"] for one in images] == ["wave.png"]
    assert [one["path"] for one in found["artifacts"]] == ["log", "wave.png"]
    assert science.here("replay", "last").status == 0


@pytest.mark.parametrize(
    ("code", "out", "err"),
    [
        ("print(2 + 2)", "4\n", ""),
        ("import sys; print('a'); print('b', file=sys.stderr); sys.exit(3)", "a\n", "FAILED: exit code 3"),
        ("open('made', 'w').write('x')", "", "files: remit artifacts "),
    ],
)
def test_what_code_printed_is_printed_and_its_failure_is_said(science: Project, code: str, out: str, err: str) -> None:
    done = science.here("run", "run_code_snippet", "--language", "python", "--code", code)
    assert (done.status, done.out) == (0, out)
    assert err in done.err


def words_of(path: Path) -> list[str]:
    try:
        return path.read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []
