"""Starts runtimes that use sandboxes, kills each at some moment, and says what is left of it; a program of its own.

Whatever a runtime leaves running becomes a child of ours, for we inherit what lost its parent: so that the end of all
of it can be awaited.
"""

from __future__ import annotations

import asyncio
import ctypes
import fnmatch
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from remit.errors import ProviderError
from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.commands import Commands
from remit.parts.sandbox.driver import Driver
from remit.parts.sandbox.enclosure import SandboxEnclosures
from remit.parts.sandbox.policy import SandboxPolicy
from remit.parts.sandbox.sandbox import Sandbox, SandboxRequest
from remit.parts.sandbox.scratch import scratch
from remit.parts.sandbox.workspaces import Workspaces
from remit.process.enclosure import Spec, quiet
from remit_testing.providers import call_context
from tests.parts.sandbox.abuse.subjects import TRIED, containers

_SUBREAPER: Final = 36
_PATIENCE_S: Final = 20
_LAST_S: Final = {
    "bwrap": 0.12,
    "network": 0.2,
    "warm": 0.4,
    "browser": 2.0,
    "podman": 1.5,
    "docker": 1.5,
}
"""By then every runtime has its programs running, or waiting."""
_SLEEP: Final = ("/bin/sh", "-c", "sleep 1000 & setsid sleep 1000 & wait")


async def _programs(driver: Driver, *argv: str, network: tuple[str, ...]) -> None:
    async def one(number: int) -> None:
        with scratch() as work:
            await driver.exec(Spec(id=str(number), argv=argv, workspace=work, network=network), quiet)

    await asyncio.gather(*(one(number) for number in range(3)))


async def _warm() -> None:
    with scratch() as folder:
        folder.chmod(0o711)
        driver = BwrapDriver("", 2, folder / "warm")
        sandbox = Sandbox(
            driver, SandboxPolicy(commands=frozenset({"python"})), Commands(("python",)), Workspaces(folder)
        )
        await sandbox.write("job/a", [("main.py", b"import sys, time; time.sleep(float(sys.argv[1]))")])
        for number, seconds in enumerate(("0", "0", "0", "1000")):
            await sandbox.run(
                SandboxRequest(conversation="job/a", key=str(number), command=("python", "main.py", seconds))
            )


async def _browser() -> None:
    from remit.clock import SystemClock  # noqa: PLC0415 - an extra, loaded where it is tried
    from remit.parts.browser.browsers import Browsers  # noqa: PLC0415 - the same
    from remit.parts.browser.settings import BrowserSettings  # noqa: PLC0415 - the same
    from remit.parts.browser.shapes import NavigateArgs  # noqa: PLC0415 - the same

    with scratch() as folder:
        sandbox = Sandbox(BwrapDriver(), SandboxPolicy(), Commands(()), Workspaces(folder))
        enclosures = SandboxEnclosures(sandbox, Commands(()), folder)
        browsers = Browsers(enclosures, BrowserSettings(), SystemClock())
        with suppress(ProviderError):  # there is no such page, but a browser to look for it
            await browsers.act("navigate", NavigateArgs(url="http://127.0.0.1/"), call_context())
        await asyncio.Event().wait()


RUNTIMES: Final[dict[str, Callable[[], Awaitable[None]]]] = {
    "bwrap": lambda: _programs(BwrapDriver(), *_SLEEP, network=()),
    "network": lambda: _programs(BwrapDriver(), *_SLEEP, network=("example.org",)),
    "warm": _warm,
    "browser": _browser,
    "podman": lambda: _programs(containers("podman"), *_SLEEP, network=()),
    "docker": lambda: _programs(containers("docker"), *_SLEEP, network=()),
}
"""The last two need an image, which tests.parts.sandbox.image makes."""


def _started(name: str) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(RUNTIMES[name]())  # type: ignore[arg-type]
        finally:
            os._exit(1)
    return pid


def _children() -> list[int]:
    return [int(word) for word in Path("/proc/thread-self/children").read_text().split()]


def _named(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    return ""


def _outlived() -> list[str]:
    """Return once no process is left; what is still there after a while."""
    found: list[str] = []

    def tired(_number: int, _frame: object) -> None:
        for pid in _children():
            found.append(f"process {_named(pid)}")
            os.kill(pid, signal.SIGKILL)
        signal.alarm(1)

    signal.signal(signal.SIGALRM, tired)
    signal.alarm(_PATIENCE_S)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    signal.alarm(0)
    return found


def _things(pid: int) -> set[str]:
    """Folders, cgroups and mounts."""
    top, temporary = Path("/sys/fs/cgroup"), tempfile.gettempdir()
    ours = f"remit-sandbox-*-{pid}-*"
    folders = [str(place) for place in Path(temporary).iterdir()]
    cgroups = [str(place) for pattern in (ours, f"*/{ours}", f"*/*/{ours}") for place in top.glob(pattern)]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if temporary in line]
    return {*folders, *cgroups, *mounts, *_containers(ours)}


def _containers(ours: str) -> list[str]:
    """The names of containers; none where none are tried."""
    found = []
    for program in TRIED:
        words = [program, "ps", "--all", "--format", "{{.Names}}"]
        found += subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return fnmatch.filter(found, ours)


def main(name: str, rounds: int, seed: int) -> None:
    """Kill so many runtimes; print what each left, as JSON lines."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    moments = random.Random(seed)
    for _ in range(rounds):
        before = _things(0)
        pid = _started(name)
        pidfd = os.pidfd_open(pid)
        over = select.select([pidfd], [], [], moments.random() * _LAST_S[name])[0]
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.close(pidfd)
        left = ["it ended by itself"] if over else []
        left += _outlived()
        left += sorted(_things(pid) - before)
        if left:
            sys.stdout.write(json.dumps(left) + "\n")
    sys.stdout.write(json.dumps({"rounds": rounds}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
