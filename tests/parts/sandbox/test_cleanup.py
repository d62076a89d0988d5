"""What was left behind is told from what is in use, and deleted by the next runtime if need be."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from remit.clock import SystemClock
from remit.parts.sandbox.cleanup import CleanupProcess, cleanup_process
from remit.parts.sandbox.leftovers import kill_marked, lives, mark_of, sweep
from remit.parts.sandbox.scratch import ScratchFolder

OURS = mark_of(os.getpid())
DEAD = OURS.rpartition("-")[0] + "-1"
"""As if of an earlier process that had our number."""
ELSEWHERE = f"remit-sandbox-1-{os.getpid()}-1"


@contextmanager
def process(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits, with some words."""
    with subprocess.Popen(["/bin/sh", "-c", "read x", *words], stdin=subprocess.PIPE) as found:
        try:
            yield found
        finally:
            found.kill()


def ended(found: subprocess.Popen[bytes], seconds: float) -> bool:
    pidfd = os.pidfd_open(found.pid)
    try:
        return bool(select.select([pidfd], [], [], seconds)[0])
    finally:
        os.close(pidfd)


def test_a_mark_lives_as_long_as_its_process_and_those_of_others_are_not_judged() -> None:
    assert [lives(mark) for mark in (OURS, f"{OURS}-7", DEAD, ELSEWHERE, "another name")] == [
        True,
        True,
        False,
        True,
        True,
    ]


def test_only_processes_with_a_mark_that_was_left_are_killed() -> None:
    marks = [OURS, DEAD, ELSEWHERE, f"x{DEAD}", f"{DEAD}x"]
    with ExitStack() as stack:
        found = [stack.enter_context(process(mark)) for mark in marks]
        kill_marked(lambda mark: not lives(mark))
        assert [ended(one, 0) for one in found] == [False, True, False, False, False]


HIDING = """
import ctypes, sys
words = open("/proc/self/stat").read().rpartition(")")[2].split()
begin, end = int(words[45]), int(words[46])
ctypes.memset(begin, 0, end - begin)
print("hidden", flush=True)
mark = sys.stdin.readline().strip().encode()
ctypes.memmove(begin, mark, len(mark))
sys.stdin.readline()
"""
"""Has no words until it is told one, as a program that becomes another."""


@pytest.mark.slow
def test_a_process_without_words_is_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", HIDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as found:
        assert found.stdout is not None
        assert found.stdin is not None
        assert found.stdout.readline() == b"hidden\n"
        killing = threading.Thread(target=kill_marked, args=(lambda mark: not lives(mark),))
        killing.start()
        killing.join(0.5)
        assert killing.is_alive()
        found.stdin.write(f"{DEAD}\n".encode())
        found.stdin.flush()
        killing.join()
        assert ended(found, 0)
        found.kill()


def test_the_next_runtime_ends_what_an_earlier_one_left() -> None:
    with process(DEAD) as left, process(OURS) as used:
        made = CleanupProcess()
        made.begin()
        assert ended(left, 30)
        assert not ended(used, 0)
        made.leave()


def test_one_that_was_killed_is_started_again_and_told_again(tmp_path: Path) -> None:
    made = CleanupProcess()
    made.tell("folder", tmp_path)
    first = made._pid
    os.kill(first, signal.SIGTERM)  # as a service manager does to all: it is not for it
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    (tmp_path / f"{DEAD}-a").mkdir()
    with process(DEAD) as left:
        made.begin()
        assert made._pid != first
        assert ended(left, 30)
    made.leave()
    os.waitpid(made._pid, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_folder_that_is_in_use_is_not_swept(tmp_path: Path) -> None:
    made = ScratchFolder(tmp_path)
    folder = made.work.parent
    assert folder.name.startswith(f"{cleanup_process().mark}-")
    sweep("folder", tmp_path, lambda _mark: True)
    assert made.work.exists()
    made.close()
    assert not folder.exists()


def test_a_folder_of_the_dead_that_is_still_held_is_deleted_once_it_is_not(tmp_path: Path) -> None:
    folder = tmp_path / f"{DEAD}-a"
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    sweeping = threading.Thread(target=sweep, args=("folder", tmp_path, lambda mark: not lives(mark)))
    sweeping.start()
    sweeping.join(0.05)
    assert sweeping.is_alive()
    os.close(fd)
    sweeping.join()
    assert not folder.exists()


def test_folders_of_the_dead_go_with_all_that_is_in_them_and_others_stay(tmp_path: Path) -> None:
    for name in (f"{DEAD}-a", f"{OURS}-b", f"{ELSEWHERE}-c", f"{ELSEWHERE}-old", "other"):
        (tmp_path / name / "work").mkdir(parents=True)
        (tmp_path / name / "work").chmod(0)
        made_ns = 0 if name.endswith("old") else SystemClock().now() * 1_000  # by the clock that the test has
        os.utime(tmp_path / name, ns=(made_ns, made_ns))
    sweep("folder", tmp_path, lambda mark: not lives(mark))
    assert {path.name for path in tmp_path.iterdir()} == {f"{OURS}-b", f"{ELSEWHERE}-c", "other"}


SERVICE = """#!/bin/sh
cd "${0%/*}"
case $1 in
    ps) ls containers ;;
    rm) shift 2; cd containers && rm -- "$@" ;;
esac
"""


def test_containers_of_the_dead_go_and_others_stay(tmp_path: Path) -> None:
    names = (f"{DEAD}-r1", f"{DEAD}-r2", f"{OURS}-r3", f"{ELSEWHERE}-r4", "remit-sandbox-of-mine", "other")
    (tmp_path / "containers").mkdir()
    for name in names:
        (tmp_path / "containers" / name).touch()
    program = tmp_path / "docker"
    program.write_text(SERVICE)
    program.chmod(0o755)
    sweep("container", program, lambda mark: not lives(mark))
    assert {path.name for path in (tmp_path / "containers").iterdir()} == set(names[2:])
    sweep("container", tmp_path / "absent", lambda _mark: True)  # without a service there are none


FORKED = """
import os, sys
from remit.parts.sandbox.cleanup import cleanup_process
ours = cleanup_process()
ours.begin()
pid = os.fork()
if pid == 0:
    os._exit(0 if cleanup_process().mark != ours.mark and ours._fd == -1 else 1)
sys.exit(os.waitpid(pid, 0)[1])
"""


def test_a_process_that_was_forked_has_one_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORKED], stdin=subprocess.DEVNULL, check=True)
