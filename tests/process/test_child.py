"""A child process is started as it is asked to be, its output is kept, and nothing of it is left in the end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from remit.process import child as children
from remit.process.child import ChildProcess

ENV: Mapping[str, str] = {"PATH": os.environ["PATH"]}
PATIENCE_S = 20
linux = pytest.mark.skipif(sys.platform != "linux", reason="uses pidfds")


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


class Talker(ChildProcess):
    """Tells of each thing that it says."""

    def __init__(self, *, grace_s: float = PATIENCE_S) -> None:
        super().__init__(tail_bytes=64, grace_s=grace_s)
        self.signals: list[signal.Signals] = []
        self.said = asyncio.Event()

    def heard(self, data: bytes) -> None:
        super().heard(data)
        self.said.set()

    def send_signal(self, how: signal.Signals) -> None:
        self.signals.append(how)
        super().send_signal(how)


@pytest.fixture
async def talker() -> AsyncIterator[Talker]:
    child = Talker()
    yield child
    await child.close()


async def said(child: Talker) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await child.said.wait()


async def over(pid: int) -> None:
    """Wait for the end of a process that is not our child."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def test_output_and_exit_status_are_there_once_it_has_ended(talker: Talker) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    await talker.start(python(code), env=ENV)
    assert await talker.ended() == 3
    assert (talker.shown(talker.out), talker.shown(talker.err)) == ("out", "err")
    assert talker.why_ended == "its process ended with exit code 3"


async def test_what_is_written_reaches_it_and_the_end_of_input_too(talker: Talker) -> None:
    await talker.start(python("import sys; print(sys.stdin.read()[::-1])"), env=ENV)
    talker.write(b"abc")
    talker.close_stdin()
    assert await talker.ended() == 0
    assert talker.shown(talker.out) == "cba"


async def test_a_child_that_reads_nothing_is_waited_for(talker: Talker) -> None:
    await talker.start(python("import time; print('up', flush=True); time.sleep(60)"), env=ENV)
    await said(talker)
    talker.write(b"x" * 4_000_000)
    waiting = asyncio.ensure_future(talker.drained())
    talker.send_signal(signal.SIGKILL)
    await talker.ended()
    await waiting


async def test_a_flood_of_output_is_cut_to_its_tail(talker: Talker) -> None:
    await talker.start(python("print('x' * 3_000_000 + 'the end', end='')"), env=ENV)
    await talker.ended()
    assert talker.out.data == (b"x" * 64 + b"the end")[-64:]
    assert talker.out.truncated


async def test_a_secret_of_its_environment_is_never_shown(talker: Talker) -> None:
    env = {**ENV, "SERVICE_TOKEN": "plain words"}
    await talker.start(python("import os; print('with ' + os.environ['SERVICE_TOKEN'])"), env=env)
    await talker.ended()
    assert talker.shown(talker.out) == "with ********"


async def test_arguments_reach_it_as_they_are_without_a_shell(talker: Talker) -> None:
    words = ["a b", "$HOME", "`id`", "--", "'"]
    await talker.start([*python("import sys; print(sys.argv[1:])"), *words], env=ENV)
    await talker.ended()
    assert talker.shown(talker.out) == repr(words)


async def test_it_leads_a_session_of_its_own_and_sees_only_its_environment(talker: Talker) -> None:
    code = "import os; print(os.getsid(0) == os.getpid(), sorted(os.environ))"
    await talker.start(python(code), env={"PATH": ENV["PATH"], "LC_ALL": "C.UTF-8"})
    await talker.ended()
    assert talker.shown(talker.out) == "True ['LC_ALL', 'PATH']"


async def test_a_descriptor_that_is_passed_stays_open(talker: Talker) -> None:
    read, write = os.pipe()
    try:
        await talker.start(python(f"import os; os.write({write}, b'through')"), env=ENV, pass_fds=(write,))
        await talker.ended()
        assert os.read(read, 10) == b"through"
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.parametrize(
    ("name", "error"),
    [("no-such-program-here", FileNotFoundError), ("./none", FileNotFoundError), ("./plain", PermissionError)],
)
async def test_a_program_that_cannot_be_started_raises(
    talker: Talker, tmp_path: Path, name: str, error: type[OSError]
) -> None:
    (tmp_path / "plain").write_text("no program")
    with pytest.raises(error):
        await talker.start([name], env=ENV, cwd=str(tmp_path))
    await talker.close()


async def test_a_path_is_relative_to_the_folder_that_it_is_started_in(talker: Talker, tmp_path: Path) -> None:
    program = tmp_path / "hello"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    await talker.start(["./hello"], env=ENV, cwd=str(tmp_path))
    assert await talker.ended() == 0
    assert talker.shown(talker.out) == "hello"


async def test_a_system_without_setpriv_starts_it_all_the_same(talker: Talker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_asking", lambda: ())
    await talker.start(python("print('here')"), env=ENV)
    assert await talker.ended() == 0


# --- the end


async def test_one_that_ends_with_its_input_is_not_told_to(talker: Talker) -> None:
    await talker.start(python("import sys; print('up', flush=True); sys.stdin.read(); print('bye')"), env=ENV)
    await said(talker)
    await talker.close()
    await talker.close()
    assert set(talker.signals) == {signal.SIGKILL}, "only what it left behind is killed"
    assert talker.shown(talker.out).split() == ["up", "bye"], "what it said at the end is read"


async def test_one_that_stays_gets_sigterm_and_then_sigkill() -> None:
    child = Talker(grace_s=0.1)
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    await child.start(python(code), env=ENV)
    await said(child)
    await asyncio.gather(child.close(), child.close())
    assert child.signals[0] == signal.SIGTERM
    assert child.exit_status == -signal.SIGKILL
    assert child.why_ended == "its process was ended by SIGKILL"


@linux
@pytest.mark.parametrize("end", ["close", "exit"])
async def test_what_it_started_ends_with_it(end: str) -> None:
    child = Talker(grace_s=0.1)
    code = (
        "import subprocess, sys; sleeper = subprocess.Popen(['sleep', '60']); print(sleeper.pid, flush=True);"
        f"{'sys.exit(0)' if end == 'exit' else 'sys.stdin.read()'}"
    )
    await child.start(python(code), env=ENV)
    await said(child)
    pid = int(child.shown(child.out))
    if end == "exit":
        assert await child.ended() == 0
    else:
        await child.close()
    await over(pid)
    await child.close()


@linux
@pytest.mark.skipif(not children._asking(), reason="needs setpriv of util-linux")
@pytest.mark.slow
async def test_it_dies_with_us_when_we_are_killed(talker: Talker) -> None:
    """The child in the middle stands for us; what it starts ignores SIGTERM and the end of its input."""
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    ours = f"""
import asyncio, os, sys
from remit.process.child import ChildProcess
class Told(ChildProcess):
    def heard(self, data):
        print(self._transport.get_pid(), flush=True)
async def main():
    child = Told()
    await child.start([sys.executable, "-I", "-S", "-c", {stubborn!r}], env=dict(os.environ))
    await child.ended()
asyncio.run(main())
"""
    await talker.start([sys.executable, "-c", ours], env=ENV)
    await said(talker)
    pid = int(talker.shown(talker.out))
    assert talker._transport is not None
    os.kill(talker._transport.get_pid(), signal.SIGKILL)  # it alone: the grandchild is in a group of its own
    try:
        await over(pid)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
