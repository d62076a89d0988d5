"""Nothing is left of a run, however it ends, and however many there are."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.cleanup import cleanup_process
from remit.parts.sandbox.commands import Commands
from remit.parts.sandbox.driver import Driver
from remit.parts.sandbox.policy import SandboxPolicy
from remit.parts.sandbox.sandbox import Sandbox, SandboxRequest
from remit.parts.sandbox.scratch import scratch
from remit.parts.sandbox.workspaces import Workspaces
from tests.parts.sandbox.abuse.subjects import CONTAINERS, containers, skip_untried

RUNS = int(os.environ.get("REMIT_TEST_SANDBOX_RUNS", "64"))
"""Executions by each driver; `REMIT_TEST_SANDBOX_RUNS=10000` takes two minutes with bwrap."""
MOST = 500
"""Of containers not more than these: each takes half a second."""
MARK = f"1000.{os.getpid()}"
DRIVERS: dict[str, Callable[[], Driver]] = {
    "bwrap": BwrapDriver,
    **{program: partial(containers, program) for program in CONTAINERS},
}
WAYS: tuple[tuple[str, dict[str, int], str, str], ...] = (
    ("echo done > made", {}, "SUCCEEDED", ""),
    ("exit 3", {}, "FAILED", ""),
    (f"sleep {MARK} & setsid sleep {MARK} & exit 0", {}, "SUCCEEDED", ""),
    ("bash -c 'kill -9 $$' || exit 4", {}, "FAILED", ""),
    ("kill -9 $$; exit 4", {}, "FAILED", ""),  # the first process of a container does not hear it
    (f"exec sleep {MARK}", {"wall_ms": 60}, "TIMEOUT", "wall_ms"),
    ("exec cat /dev/zero", {"stdout_bytes": 100}, "FAILED", "stdout_bytes"),
    ("rm -rf ./*; mkdir -p a/b && chmod 0 a", {}, "SUCCEEDED", ""),
    ("chmod 700 a; rm -rf a", {}, "", ""),
)


def left() -> dict[str, set[str]]:
    """Whatever a run may not leave: mounts, processes, folders, cgroups of ours."""
    top = Path("/sys/fs/cgroup")
    mine = cleanup_process().mark
    return {
        "mounts": set(Path("/proc/self/mountinfo").read_text().splitlines()),
        "processes": {str(pid) for pid in marked()},
        "folders": {path.name for path in Path(tempfile.gettempdir()).glob("remit-sandbox-*")},
        "cgroups": {
            path.name for pattern in (f"{mine}-*", f"*/{mine}-*", f"*/*/{mine}-*") for path in top.glob(pattern)
        },
    }


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def marked() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[:2] == [b"sleep", MARK.encode()]:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files that nobody else uses."""
    with scratch() as place:
        place.chmod(0o711)
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        yield place


@pytest.mark.slow
@pytest.mark.parametrize("name", DRIVERS)
async def test_many_runs_leave_nothing_behind(name: str, temporary: Path) -> None:
    skip_untried(name)
    runs = min(RUNS, MOST) if name in CONTAINERS else RUNS
    with scratch() as folder:
        folder.chmod(0o711)
        driver = DRIVERS[name]()
        policy = SandboxPolicy(min_isolation=(await driver.probe()).level, commands=frozenset({"bash"}))
        sandbox = Sandbox(driver, policy, Commands(("bash",)), Workspaces(folder))
        await sandbox.run(SandboxRequest(conversation="job/0", key="first", command=("bash", "-c", ":")))
        before, files = left(), open_files()
        found: Counter[tuple[str, str, str]] = Counter()

        async def conversation(number: int) -> None:
            for count in range(number, runs, 4):
                code, limits, status, limit = WAYS[count // 4 % len(WAYS)]
                asked = SandboxRequest(
                    conversation=f"job/{number}",
                    key=str(count),
                    command=("bash", "-c", code),
                    layers=({"limits": limits},),
                )
                execution = (await sandbox.run(asked)).execution
                wrong = status not in {"", execution.status} or limit != execution.limit
                found[code, execution.status, execution.limit] += wrong
                await sandbox.collect(f"job/{number}", ())

        await asyncio.gather(*(conversation(number) for number in range(4)))
        await sandbox.driver.close()
        after = left()
        assert {way: count for way, count in found.items() if count} == {}
        assert open_files() <= files
        assert [what for what in before if after[what] - before[what]] == []
