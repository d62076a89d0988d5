"""A message is given to a program: as JSON on stdin, with little of our environment, for a limited time."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit.parts.notify.sender import AttemptEnd, Notice, Sender, run
from remit.parts.notify.target import NotifyTarget
from remit_testing.clock import ManualClock
from tests.patience import PATIENCE_S

MESSAGE = Notice(id="n_1", event="question", at="2026-01-01T00:00:00Z", title="x; $(touch pwned)")


def program(text: str, *words: str, **keys: Any) -> NotifyTarget:
    return msgspec.convert({"name": "pager", "command": [sys.executable, "-c", text, *words], **keys}, NotifyTarget)


async def test_it_reads_the_message_and_status_0_means_taken(tmp_path: Path) -> None:
    text = (
        "import sys, os; seen = sys.argv[1] + os.environ['WORD'] + os.environ.get('MINE', '-'); "
        "open('got', 'w').write(sys.stdin.read() + seen)"
    )
    target = program(text, "$HOME; x", env={"WORD": "${SECRET}"})
    environ = {"PATH": os.environ["PATH"], "SECRET": "hunter22", "MINE": "no"}
    answer = await Sender(environ, str(tmp_path), ManualClock()).send(target, MESSAGE)
    assert answer == AttemptEnd(ok=True, words="its process ended with exit code 0")
    body, _, rest = (tmp_path / "got").read_text().partition("\n")
    assert msgspec.json.decode(body, type=Notice) == MESSAGE
    assert rest == "$HOME; xhunter22-"


async def test_another_status_is_a_failure_that_quotes_no_secret(tmp_path: Path) -> None:
    target = program(
        "import sys, os; print(os.environ['WORD'], file=sys.stderr); sys.exit(3)", env={"WORD": "hunter22"}
    )
    answer = await Sender({}, str(tmp_path), ManualClock()).send(target, MESSAGE)
    assert answer == AttemptEnd(ok=False, words="its process ended with exit code 3: ********")


async def test_a_program_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    target = msgspec.convert({"name": "pager", "command": ["/not/there"]}, NotifyTarget)
    answer = await Sender({}, str(tmp_path), ManualClock()).send(target, MESSAGE)
    assert (answer.ok, "FileNotFoundError" in answer.words) == (False, True)


@pytest.mark.slow
async def test_after_its_time_it_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """The child writes the pid of its own child, then both wait for ever and ignore SIGTERM."""
    text = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); pid = os.fork()\n"
        "open('pids', 'a').write(f'{os.getpid()}\\n')\n"
        "while True: time.sleep(9)"
    )
    with pytest.raises(TimeoutError):
        await run(program(text), MESSAGE, {"PATH": os.environ["PATH"]}, str(tmp_path), limit_s=0.5)
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    assert [pid for pid in pids if not ends(pid)] == []


def ends(pid: int) -> bool:
    """Whether a process has ended, or does so at last: a signal takes its time on a busy machine."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], PATIENCE_S)[0])
    finally:
        os.close(process)
