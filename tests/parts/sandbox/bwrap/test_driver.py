"""The driver on this machine, with real programs."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.bwrap.program import INSTALL
from remit.parts.sandbox.cleanup import cleanup_process
from remit.parts.sandbox.driver import Isolation
from remit.process.enclosure import FolderMount, SandboxUnavailableError, Spec, quiet
from tests.parts.sandbox.conftest import Box

pytestmark = pytest.mark.slow

MB = 1024 * 1024


async def test_a_probe_runs_the_whole_command_line_and_names_every_limit(box: Box) -> None:
    found = await box.driver.probe()
    assert found.level is Isolation.namespaces, found.reasons
    assert [check.ok for check in found.checks] == [True, True, True]
    assert set(found.limits) >= {"wall_ms", "memory_bytes", "pids", "cpu_ms", "descriptors", "workspace_bytes"}


async def test_without_bwrap_it_says_so_and_runs_nothing(tmp_path: Path) -> None:
    driver = BwrapDriver(str(tmp_path / "bwrap"))
    found = await driver.probe()
    assert (found.level, found.remedy) == (Isolation.none, INSTALL)
    assert found.reasons == (f"bwrap: {tmp_path / 'bwrap'} cannot be run",)
    with pytest.raises(SandboxUnavailableError, match="cannot be run"):
        await driver.exec(Spec(id="x", argv=("/bin/touch", "made"), workspace=tmp_path), quiet)
    assert list(tmp_path.iterdir()) == []


async def test_a_bwrap_that_may_not_make_namespaces_is_no_sandbox(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo bubblewrap 0.9.0 && exit\n"
        "echo 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    fake.chmod(0o755)
    tmp_path.chmod(0o755)
    driver = BwrapDriver(str(fake))
    found = await driver.probe()
    await driver.close()
    assert found.reasons == ("namespaces: bwrap: setting up uid map: Permission denied",)
    assert "AppArmor" in found.remedy


async def test_output_and_exit_code_come_back(box: Box) -> None:
    found = await box("/bin/sh", "-c", "echo out; echo err >&2; exit 3")
    assert (found.status, found.exit_code, found.signal, found.limit) == ("FAILED", 3, "", "")
    assert (found.stdout.data, found.stderr.data) == (b"out\n", b"err\n")


async def test_stdin_environment_and_mounts_reach_the_program(box: Box, reachable: Path) -> None:
    (reachable / "given").write_text("given")
    found = await box(
        "/bin/sh",
        "-c",
        "cat; echo $WORD; cat /inputs/given; touch /inputs/x 2>/dev/null || echo closed",
        stdin=b"x" * 200_000 + b"\n",
        env={"WORD": "a b"},
        mounts=(FolderMount(reachable, "/inputs"),),
    )
    assert found.stdout.data == b"x" * 200_000 + b"\na b\ngivenclosed\n"


async def test_what_it_writes_stays_in_its_workspace(box: Box) -> None:
    await box("/bin/sh", "-c", "echo kept > kept; echo gone > /tmp/gone")
    assert (box.work / "kept").read_text() == "kept\n"
    found = await box("/bin/sh", "-c", "cat kept; ls /tmp")
    assert found.stdout.data == b"kept\n"


async def test_time_that_is_up_ends_it_with_what_it_wrote(box: Box) -> None:
    found = await box("/bin/sh", "-c", "echo first; sleep 60", wall_ms=300)
    assert (found.status, found.limit, found.stdout.data) == ("TIMEOUT", "wall_ms", b"first\n")
    assert found.receipt.usage.wall_ms < 5_000


async def test_processor_time_that_is_used_up_ends_it(box: Box) -> None:
    found = await box.python("while True: pass", cpu_ms=200)
    assert (found.status, found.limit) == ("FAILED", "cpu_ms")


async def test_memory_that_is_used_up_ends_it_or_is_refused_to_it(box: Box) -> None:
    found = await box.python("x = bytearray(400_000_000); print('had it')", memory_bytes=100 * MB)
    assert found.status == "FAILED"
    assert b"had it" not in found.stdout.data


async def test_processes_are_counted(box: Box) -> None:
    found = await box("/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done; echo all", pids=6)
    assert b"all" not in found.stdout.data
    assert found.status == "FAILED"


async def test_a_file_that_grows_too_large_ends_it(box: Box) -> None:
    found = await box("/bin/sh", "-c", "exec cat /dev/zero > big", file_bytes=MB)
    assert (found.status, found.limit, found.signal) == ("FAILED", "file_bytes", "SIGXFSZ")
    assert (box.work / "big").stat().st_size == MB


async def test_a_workspace_that_grows_too_large_ends_it(box: Box) -> None:
    code = "import time\nfor i in range(40): open(str(i), 'wb').write(bytes(1_000_000))\ntime.sleep(60)"
    found = await box.python(code, workspace_bytes=10 * MB)
    assert (found.status, found.limit) == ("FAILED", "workspace_bytes")


async def test_a_workspace_that_was_filled_in_a_burst_fails_too(box: Box) -> None:
    found = await box.python("open('x', 'wb').write(bytes(9_000_000))", workspace_bytes=MB)
    assert (found.status, found.limit) == ("FAILED", "workspace_bytes")
    found = await box("/bin/true", workspace_bytes=100 * MB, workspace_files=0)
    assert (found.status, found.limit) == ("FAILED", "workspace_files")


async def test_endless_output_is_cut_and_then_ended(box: Box) -> None:
    found = await box("/bin/sh", "-c", "exec cat /dev/zero", stdout_bytes=10_000)
    assert (found.status, found.limit) == ("FAILED", "stdout_bytes")
    assert found.stdout.data == bytes(10_000)
    assert found.stdout.truncated


async def test_output_of_any_bytes_comes_back_as_it_is(box: Box) -> None:
    found = await box.python("import os; os.write(1, bytes(range(256)) * 100)")
    assert found.stdout.data == bytes(range(256)) * 100
    assert not found.stdout.truncated


async def test_what_it_leaves_running_ends_with_it(box: Box) -> None:
    found = await box("/bin/sh", "-c", "(trap '' TERM HUP; sleep 100.0317; touch late) & echo started")
    assert (found.status, found.stdout.data) == ("SUCCEEDED", b"started\n")
    assert not any("sleep 100.0317" in line for line in processes())


async def test_output_is_heard_while_it_runs(box: Box) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    run = asyncio.create_task(
        box("/bin/sh", "-c", "echo first; cat fifo", listener=lambda _stream, data: heard.put_nowait(data))
    )
    assert await heard.get() == b"first\n"
    assert not run.done()
    run.cancel()
    await asyncio.wait([run])


async def test_a_run_that_is_cancelled_is_gone_when_the_cancellation_is(box: Box) -> None:
    started = asyncio.Event()
    run = asyncio.create_task(box("/bin/sh", "-c", "echo x; sleep 3123", listener=lambda _stream, _data: started.set()))
    await started.wait()
    run.cancel()
    await asyncio.wait([run])
    assert run.cancelled()
    assert not any("sleep 3123" in line for line in processes())


async def test_a_run_can_be_ended_from_outside(box: Box) -> None:
    started = asyncio.Event()
    run = asyncio.create_task(box("/bin/sh", "-c", "echo x; sleep 60", listener=lambda _stream, _data: started.set()))
    await started.wait()
    await box.driver.kill("run1")
    found = await run
    assert (found.status, found.limit, found.signal) == ("FAILED", "", "SIGKILL")
    await box.driver.kill("no such run")


async def test_a_run_that_is_ended_before_it_stands_is_a_run_that_was_ended(box: Box) -> None:
    await box.driver.probe()
    for _ in range(8):
        name = f"run{box.count + 1}"
        run = asyncio.create_task(box("/bin/sleep", "60"))
        while name not in box.driver._runs:
            await asyncio.wait([asyncio.ensure_future(asyncio.to_thread(int))])
        await box.driver.kill(name)  # bwrap was started, and has not reported its first process
        found = await run
        assert (found.status, found.signal, found.limit) == ("FAILED", "SIGKILL", "")


async def test_a_program_that_does_not_exist_fails_in_words(box: Box) -> None:
    found = await box("/usr/bin/no-such-program")
    assert (found.status, found.exit_code) == ("FAILED", 1 if b"bwrap" in found.stderr.data else 127)
    assert b"no-such-program" in found.stderr.data


async def test_the_receipt_says_how_it_was_isolated(box: Box) -> None:
    receipt = (await box("/bin/true")).receipt
    assert (receipt.driver, receipt.isolation, receipt.network) == ("bwrap", "namespaces", [])
    assert receipt.filter_hash.startswith("sha256:")
    assert receipt.limits["memory_bytes"]


async def test_runs_leave_nothing_behind(box: Box) -> None:
    await box("/bin/true")
    before = (open_files(), cgroups(), set(processes()))
    for _ in range(20):
        await asyncio.gather(*(box("/bin/sh", "-c", "sleep 100 & :") for _ in range(4)))
    assert open_files() == before[0]
    assert not {line for line in set(processes()) - before[2] if cleanup_process().mark in line}
    await box.driver.close()
    assert not [name for name in cgroups() if name.startswith(f"{cleanup_process().mark}-")]


async def test_a_signal_that_ends_it_is_named(box: Box) -> None:
    found = await box("/bin/sh", "-c", "kill -SEGV $$")
    assert (found.status, found.signal) == ("FAILED", signal.SIGSEGV.name)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def cgroups() -> list[str]:
    top = Path("/sys/fs/cgroup")
    return [path.name for pattern in ("remit-*", "*/remit-*", "*/*/remit-*") for path in top.glob(pattern)]


def processes() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found
