"""What a child left running in sessions of its own is ended with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from remit.process import family
from remit.process.family import ProcessFamily

PAUSE = (sys.executable, "-I", "-S", "-c", "import signal; signal.pause()")


@contextmanager
def sleeper(env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(PAUSE, env=env, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_only_processes_with_the_mark_are_ended() -> None:
    one, other = ProcessFamily(), ProcessFamily()
    with sleeper(one.env) as ours, sleeper(other.env) as theirs:
        assert one.end() == 1
        assert ours.wait() == -signal.SIGKILL
        assert theirs.poll() is None


@pytest.mark.parametrize("older", [False, True])
def test_a_process_whose_environment_is_not_there_yet_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    """While the kernel begins a program, `environ` is empty: 2 in 1,000 times right after a start, here each time."""
    monkeypatch.setattr(family, "_PROC", tmp_path)
    pauses: list[float] = []
    with sleeper({}) as process:
        folder = tmp_path / str(process.pid)
        if older:
            folder.mkdir()
        ours = ProcessFamily()
        folder.mkdir(exist_ok=True)
        (folder / "exe").symlink_to(sys.executable)
        (folder / "environ").write_bytes(b"")

        def begin(seconds: float) -> None:
            pauses.append(seconds)
            (folder / "environ").write_bytes(b"\0".join(f"{name}={value}".encode() for name, value in ours.env.items()))

        monkeypatch.setattr("time.sleep", begin)
        assert ours.end() == (0 if older else 1)
        assert len(pauses) == (0 if older else 1)
        assert process.poll() is None if older else process.wait() == -signal.SIGKILL


def test_a_process_without_an_environment_is_waited_for_only_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "_PROC", tmp_path)
    ours = ProcessFamily()
    folder = tmp_path / str(os.getpid())
    folder.mkdir()
    (folder / "exe").symlink_to(sys.executable)
    (folder / "environ").write_bytes(b"")
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    assert ours.end() == 0
    assert 0 < len(pauses) < 100
