"""Programs that are run to their end: real processes, and nothing of them is left."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from remit.clock import SystemClock
from remit.parts.work.executors import program
from remit.parts.work.executors.port import ProgramEnding
from remit.parts.work.executors.program import Heard, run_program
from tests.jumping import leap
from tests.patience import PATIENCE_S

ENV = {"PATH": "/usr/bin:/bin"}
ESCAPE = "import subprocess; child = subprocess.Popen(['sleep', '86400'], start_new_session=True); "


async def run(tmp_path: Path, *command: str, heard: Heard = lambda _stream, _data: None) -> ProgramEnding:
    """Run a command in the test's folder."""
    return await run_program(
        command,
        cwd=tmp_path,
        env=ENV,
        timeout_s=PATIENCE_S,
        logs=(tmp_path / "out", tmp_path / "err"),
        clock=SystemClock(),
        listener=heard,
    )


def python(code: str) -> tuple[str, ...]:
    """Return the command that runs some Python."""
    return (sys.executable, "-I", "-c", code)


def pid_of(path: Path) -> int:
    """Return the process whose number stands in a file."""
    return int(path.read_text())


async def test_output_and_exit_code_are_kept(tmp_path: Path) -> None:
    heard: list[bytes] = []
    ending = await run(
        tmp_path,
        *python("import sys; print('hello'); print('no', file=sys.stderr); sys.exit(3)"),
        heard=lambda _stream, data: heard.append(data),
    )
    assert (ending.exit_code, ending.passed, ending.timed_out) == (3, False, False)
    assert ((tmp_path / "out").read_text(), (tmp_path / "err").read_text()) == ("hello\n", "no\n")
    assert b"hello" in b"".join(heard)
    assert (ending.stdout_bytes, ending.stderr_bytes) == (6, 3)


@pytest.mark.parametrize("command", [("no-such-program",), ("/nowhere/x",)])
async def test_a_program_that_is_not_there_fails(tmp_path: Path, command: tuple[str, ...]) -> None:
    ending = await run(tmp_path, *command)
    assert not ending.passed
    assert ending.exit_code == 127


async def test_stdin_is_closed(tmp_path: Path) -> None:
    assert (await run(tmp_path, *python("import sys; sys.exit(len(sys.stdin.read()))"))).exit_code == 0


async def test_what_escaped_into_a_session_of_its_own_ends_with_the_program(tmp_path: Path) -> None:
    code = ESCAPE + f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))"
    assert (await run(tmp_path, *python(code))).passed
    assert not Path(f"/proc/{pid_of(tmp_path / 'pid')}").exists()


async def test_a_program_that_hangs_and_ignores_sigterm_is_killed_with_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "_GRACE_S", 0.2)
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        + ESCAPE
        + "print(child.pid, flush=True); time.sleep(86400)"
    )
    ending = await run(tmp_path, *python(code), heard=lambda _stream, _data: leap(monkeypatch, PATIENCE_S))
    assert ending.timed_out
    assert not ending.passed
    assert not Path(f"/proc/{pid_of(tmp_path / 'out')}").exists()


async def test_cancelling_ends_all_of_it_before_it_goes_on(tmp_path: Path) -> None:
    started = asyncio.Event()
    code = ESCAPE + "print(child.pid, flush=True); import time; time.sleep(86400)"
    task = asyncio.create_task(
        run_program(
            python(code),
            cwd=tmp_path,
            env=ENV,
            timeout_s=PATIENCE_S,
            logs=(tmp_path / "out", tmp_path / "err"),
            clock=SystemClock(),
            listener=lambda _stream, _data: started.set(),
        )
    )
    async with asyncio.timeout(PATIENCE_S):
        await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{pid_of(tmp_path / 'out')}").exists()


async def test_more_than_is_archived_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MAX_LOG", 1_000)
    ending = await run(tmp_path, *python("print('x' * 100_000)"))
    assert ending.stdout_bytes == 100_001
    text = (tmp_path / "out").read_bytes()
    assert text.startswith(b"x" * 1_000)
    assert b"[cut:" in text
    assert len(text) < 1_100
