from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Project, lines_until
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


def test_a_worker_runs_what_is_due_and_stops_when_told(project: Project) -> None:
    detached = project.here("run", "greet", "--name", "x", "--detach").out.strip()
    parked = project.job("waits")
    with project.start("worker", "--concurrency", "2") as worker:
        lines_until(worker, lambda line: "2 at once" in line)
        assert '"Hello x"' in wait_for(project, detached)
        project.here("signal", parked, "go", '"from outside"')
        assert '"from outside"' in wait_for(project, parked)
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=PATIENCE_S)
    assert (worker.returncode, out) == (0, "")
    assert err.rstrip().endswith("stopped")
    assert f"job/{detached}: begun" in err
    assert f"job/{detached}: completed" in err


def test_a_worker_lets_a_call_under_way_end(project: Project) -> None:
    os.mkfifo(project.folder / "done")
    job = project.here("run", "risky", "--done", "done", "--detach").out.strip()
    with project.start("worker") as worker:
        lines_until(worker, lambda line: "a write is under way" in line)
        worker.send_signal(signal.SIGINT)
        lines_until(worker, lambda line: "1 job under way, 20 s left to end" in line)
        (project.folder / "done").write_text("written", encoding="utf-8")
        worker.communicate(timeout=PATIENCE_S)
    assert worker.returncode == 0
    assert project.here("show", job, "--json").json["result"] == "written"


def test_a_second_signal_stops_a_worker_at_once_and_another_takes_its_jobs(project: Project) -> None:
    job = project.here("run", "forever", "--detach").out.strip()
    for _ in range(2):
        with project.start("worker") as worker:
            lines_until(worker, lambda line: "a read is under way" in line)
            worker.send_signal(signal.SIGTERM)
            lines_until(worker, lambda line: "20 s left to end" in line)
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=PATIENCE_S)
        assert worker.returncode == 130
    assert project.here("show", job, "--json").json["row"]["worker"] == ""


def test_a_worker_whose_journal_cannot_be_opened_says_why(project: Project) -> None:
    (project.folder / "x.db").write_bytes(b"this is no database" * 100)
    done = project.here("--journal", "x.db", "worker")
    assert done.status == 1
    assert "JOURNAL_CORRUPT" in done.err


def test_a_worker_that_cannot_reach_its_journal_says_so_once_and_not_that_it_works(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    done = project.here("--journal", f"postgresql://127.0.0.1:{port}/none", "worker")
    assert (done.status, done.err.count("JOURNAL_IO"), "works on" in done.err) == (1, 1, False)


def test_a_worker_that_waits_for_its_journal_hears_that_it_shall_stop(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/none?sslmode=disable"
        with project.start("--journal", url, "worker") as worker:
            connection, _ = silent.accept()
            with connection:
                worker.send_signal(signal.SIGTERM)
                _, err = worker.communicate(timeout=PATIENCE_S)
    assert (worker.returncode, err) == (0, "")


def wait_for(project: Project, job: str) -> str:
    """The end of a job that somebody else works on, as its followed trace tells it."""
    done = project.here("trace", job, "--follow", "--events")
    assert "job_completed" in done.out
    return project.here("show", job).out


def test_the_demo_shows_run_trace_and_replay(project: Project) -> None:
    """What scripts/demo.sh does, with the interpreter of these tests and a smaller library to read."""
    text = (Path(__file__).parents[2] / "scripts" / "demo.sh").read_text(encoding="utf-8")
    script, replaced = re.subn(r"^library=.*$", f"library={Path(asyncio.__file__).parent}", text, flags=re.MULTILINE)
    assert replaced == 1
    (project.folder / "scripts").mkdir()
    binaries = project.folder / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    (binaries / "remit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m remit "$@"\n', encoding="utf-8")
    (binaries / "remit").chmod(0o755)
    demo = project.folder / "scripts" / "demo.sh"
    demo.write_text(script, encoding="utf-8")
    demo.chmod(0o755)
    screen = project.run_script(demo)
    assert screen.status == 0, screen.err
    assert "folder.search" in screen.out
    assert "same" in screen.out


def test_a_run_at_the_terminal_is_run_by_its_own_code_whatever_worker_is_faster(project: Project) -> None:
    """Also after it was parked, and also with an engine that looks for work all the time."""
    module = project.folder / "edited.py"
    code = (
        "from remit import Run, recipe\n\n\n@recipe('edited')\nasync def edited(run: Run) -> str:\n"
        '    """Park, then say which edition this is."""\n'
        "    await run.sleep(0.3)\n    return 'OLD'\n"
    )
    module.write_text(code, encoding="utf-8")
    project.configure(f"[app]\nmodules = ['{module}']\n", modules=False)
    with project.start("worker") as worker:
        try:
            lines_until(worker, lambda line: "runs plans and the recipes" in line)
            module.write_text(code.replace("OLD", "NEWER"), encoding="utf-8")
            done = [project.apart("-q", "run", "edited") for _ in range(3)]
        finally:
            worker.terminate()
            _, log = worker.communicate(timeout=PATIENCE_S)
    assert [one.out for one in done] == ['"NEWER"\n'] * 3, [one.err for one in done]
    assert "was recorded as" not in log
